using System;
using System.Text;

namespace Coprocessor
{
    /// <summary>A request that cannot be answered but with this status, and the end of the connection.</summary>
    sealed class Refusal : Exception
    {
        public readonly int Status;

        public Refusal(int status, string why) : base(why)
        {
            Status = status;
        }
    }

    /// <summary>One request: its head as it was read, and later its body.</summary>
    sealed class Request
    {
        public string Method;
        public string Path;
        public byte[] Body;
        /// <summary>Of the body; -1 when it comes in chunks.</summary>
        public int Length;
        public bool IsKept;
        public bool ExpectsContinue;

        /// <summary>Reads a head, from its first line to the end of its last header's line.</summary>
        public static Request Parse(string head)
        {
            string[] lines = head.Split(new[] { "\r\n" }, StringSplitOptions.None);
            var request = new Request();
            bool isModern = request.First(lines[0]);
            request.IsKept = isModern;
            bool hasHost = false, isChunked = false, hasLength = false;
            for (int index = 1; index < lines.Length; index++)
            {
                int colon = lines[index].IndexOf(':');
                if (colon <= 0 || !IsName(lines[index], colon))
                {
                    throw new Refusal(400, "malformed header");
                }
                string value = lines[index].Substring(colon + 1).Trim(' ', '\t');
                switch (lines[index].Substring(0, colon).ToLowerInvariant())
                {
                    case "host":
                        hasHost = hasHost ? throw new Refusal(400, "two hosts") : true;
                        break;
                    case "content-length":
                        int length = LengthOf(value);
                        if (hasLength && length != request.Length)
                        {
                            throw new Refusal(400, "two lengths");
                        }
                        request.Length = length;
                        hasLength = true;
                        break;
                    case "transfer-encoding":
                        if (isChunked || !Is(value, "chunked"))
                        {
                            throw new Refusal(501, "the only transfer encoding is chunked");
                        }
                        isChunked = true;
                        break;
                    case "connection":
                        request.Connection(value);
                        break;
                    case "expect":
                        request.ExpectsContinue = Is(value, "100-continue") ? isModern
                            : throw new Refusal(417, "nothing but 100-continue can be expected");
                        break;
                }
            }
            if (isModern && !hasHost || isChunked && (hasLength || !isModern))
            {
                throw new Refusal(400, "no host, or two ways to tell the length");
            }
            request.Length = isChunked ? -1 : request.Length;
            return request;
        }

        /// <summary>Reads the first line; is it HTTP/1.1?</summary>
        bool First(string line)
        {
            string[] words = line.Split(' ');
            if (words.Length != 3 || words[0] == "" || words[1] == "" || !IsName(words[0], words[0].Length))
            {
                throw new Refusal(400, "malformed request line");
            }
            bool isModern = words[2] == "HTTP/1.1";
            if (!isModern && words[2] != "HTTP/1.0")
            {
                bool isVersion = words[2].StartsWith("HTTP/", StringComparison.Ordinal);
                throw new Refusal(isVersion ? 505 : 400, "the version is HTTP/1.1");
            }
            Method = words[0];
            string target = words[1];
            if (target.StartsWith("http://", StringComparison.OrdinalIgnoreCase))
            {
                int slash = target.IndexOf('/', 7);
                target = slash < 0 ? "/" : target.Substring(slash);
            }
            int query = target.IndexOf('?');
            Path = query < 0 ? target : target.Substring(0, query);
            return isModern;
        }

        void Connection(string value)
        {
            foreach (string word in value.Split(','))
            {
                if (Is(word.Trim(), "close"))
                {
                    IsKept = false;
                    return;
                }
                IsKept |= Is(word.Trim(), "keep-alive");
            }
        }

        static int LengthOf(string value)
        {
            if (value == "" || value.Trim("0123456789".ToCharArray()) != "")
            {
                throw new Refusal(400, "malformed Content-Length");
            }
            if (value.Length > 9 || int.Parse(value) > Message.BodyLimit)
            {
                throw new Refusal(413, "the message is too large");
            }
            return int.Parse(value);
        }

        static bool IsName(string text, int length)
        {
            for (int index = 0; index < length; index++)
            {
                char letter = text[index];
                bool isLetter = letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z';
                bool isDigit = letter >= '0' && letter <= '9';
                if (!isLetter && !isDigit && "!#$%&'*+-.^_`|~".IndexOf(letter) < 0)
                {
                    return false;
                }
            }
            return true;
        }

        static bool Is(string value, string word) => value.Equals(word, StringComparison.OrdinalIgnoreCase);
    }
}
