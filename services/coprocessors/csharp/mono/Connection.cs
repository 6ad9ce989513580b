using System;
using System.Globalization;
using System.IO;
using System.Net.Sockets;
using System.Text;
using System.Threading;

namespace Coprocessor
{
    /// <summary>One connection: HTTP/1.1 with keep-alive, read and written in as few calls as possible.</summary>
    sealed class Connection : IDisposable
    {
        const int HeadLimit = 64 << 10;
        /// <summary>A buffer that a large message has made larger than this is given back.</summary>
        const int KeptSize = 1 << 20;
        static readonly byte[] Continue = Encoding.ASCII.GetBytes("HTTP/1.1 100 Continue\r\n\r\n");

        const int Waiting = 0, Busy = 1, Leaving = 2;

        readonly Socket socket;
        readonly Routes routes;
        /// <summary>Waiting for a request, busy with one, or told to leave.</summary>
        int state = Waiting;
        bool isLast;
        /// <summary>What came and was not used yet: from start to end.</summary>
        byte[] input = new byte[8 << 10];
        int start, end;
        byte[] chunks = new byte[0];
        MemoryStream answer = new MemoryStream(2048);
        byte[] output = new byte[4 << 10];

        public Connection(Socket socket, Routes routes)
        {
            this.socket = socket;
            this.routes = routes;
        }

        public void Dispose() => socket.Close();

        /// <summary>Told from outside: not to wait for another request.</summary>
        public void Leave()
        {
            Volatile.Write(ref isLast, true);
            if (Interlocked.CompareExchange(ref state, Leaving, Waiting) == Waiting)
            {
                try
                {
                    socket.Shutdown(SocketShutdown.Both);
                }
                catch (SocketException)
                {
                    // The client left first.
                }
            }
        }

        /// <summary>Answers requests until one side has had enough.</summary>
        public void Serve()
        {
            bool goesOn = true;
            while (goesOn)
            {
                if (start == end && !Receive())
                {
                    return;
                }
                if (Interlocked.CompareExchange(ref state, Busy, Waiting) != Waiting)
                {
                    return;
                }
                goesOn = ServeOne();
                Shrink();
                Volatile.Write(ref state, Waiting);
                goesOn = goesOn && !Volatile.Read(ref isLast);
            }
        }

        /// <summary>Answers one request; may the next one come?</summary>
        bool ServeOne()
        {
            answer.SetLength(0);
            try
            {
                string head = ReadHead();
                if (head == null)
                {
                    return false;
                }
                Request request = Request.Parse(head);
                if (!ReadBody(request))
                {
                    return false;
                }
                int status = routes.Answer(request, answer, out string allow);
                bool goesOn = request.IsKept && !Volatile.Read(ref isLast);
                Send(status, allow, goesOn, request.Method != "HEAD");
                return goesOn;
            }
            catch (Refusal refusal)
            {
                byte[] why = Encoding.UTF8.GetBytes(refusal.Message);
                answer.SetLength(0);
                answer.Write(why, 0, why.Length);
                Send(refusal.Status, null, false, true);
                Linger();
                return false;
            }
        }

        /// <summary>The head without its last empty line, or null when the client is gone.</summary>
        string ReadHead()
        {
            int seen = start;
            while (true)
            {
                // Empty lines before a request are to be ignored.
                while (end - start >= 2 && input[start] == '\r' && input[start + 1] == '\n')
                {
                    start += 2;
                    seen = start;
                }
                for (; seen + 3 < end; seen++)
                {
                    if (input[seen] == '\r' && input[seen + 1] == '\n' && input[seen + 2] == '\r' && input[seen + 3] == '\n')
                    {
                        string head = Encoding.ASCII.GetString(input, start, seen - start);
                        start = seen + 4;
                        return head;
                    }
                }
                if (end - start > HeadLimit)
                {
                    throw new Refusal(431, "the head is too large");
                }
                int before = start;
                if (!Receive())
                {
                    return null;
                }
                seen -= before - start;
            }
        }

        /// <summary>Reads the body; false when the client is gone.</summary>
        bool ReadBody(Request request)
        {
            if (request.ExpectsContinue && start == end && request.Length != 0)
            {
                SendAll(Continue, Continue.Length);
            }
            if (request.Length < 0)
            {
                return ReadChunks(request);
            }
            if (!Await(request.Length))
            {
                return false;
            }
            // Messages begin at the first byte of a buffer.
            if (chunks.Length < request.Length)
            {
                chunks = new byte[Math.Max(request.Length, 8 << 10)];
            }
            Buffer.BlockCopy(input, start, chunks, 0, request.Length);
            start += request.Length;
            request.Body = chunks;
            return true;
        }

        bool ReadChunks(Request request)
        {
            request.Length = 0;
            while (true)
            {
                string line = ReadLine();
                if (line == null)
                {
                    return false;
                }
                int size = SizeOf(line);
                if (size == 0)
                {
                    break;
                }
                if (size > Message.BodyLimit - request.Length)
                {
                    throw new Refusal(413, "the message is too large");
                }
                if (!Await(size + 2))
                {
                    return false;
                }
                if (input[start + size] != '\r' || input[start + size + 1] != '\n')
                {
                    throw new Refusal(400, "a chunk is longer than it says");
                }
                if (chunks.Length < request.Length + size)
                {
                    Array.Resize(ref chunks, Math.Max(2 * chunks.Length, request.Length + size));
                }
                Buffer.BlockCopy(input, start, chunks, request.Length, size);
                start += size + 2;
                request.Length += size;
            }
            request.Body = chunks;
            return SkipTrailers();
        }

        bool SkipTrailers()
        {
            for (int lines = 0; lines < 100; lines++)
            {
                string line = ReadLine();
                if (string.IsNullOrEmpty(line))
                {
                    return line != null;
                }
            }
            throw new Refusal(431, "too many trailers");
        }

        static int SizeOf(string line)
        {
            int semicolon = line.IndexOf(';');
            string digits = (semicolon < 0 ? line : line.Substring(0, semicolon)).TrimEnd(' ', '\t');
            bool isSize = int.TryParse(digits, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out int size);
            return isSize && size >= 0 ? size : throw new Refusal(400, "a chunk without a size");
        }

        /// <summary>A line of at most 4 KiB, or null when the client is gone.</summary>
        string ReadLine()
        {
            int length = 0;
            while (true)
            {
                for (; start + length + 1 < end; length++)
                {
                    if (input[start + length] == '\r' && input[start + length + 1] == '\n')
                    {
                        string line = Encoding.ASCII.GetString(input, start, length);
                        start += length + 2;
                        return line;
                    }
                }
                if (length > 4096)
                {
                    throw new Refusal(400, "a line of a chunk is too long");
                }
                if (!Receive())
                {
                    return null;
                }
            }
        }

        /// <summary>Waits until this many bytes have come; false when the client is gone.</summary>
        bool Await(int count)
        {
            while (end - start < count)
            {
                if (!Receive())
                {
                    return false;
                }
            }
            return true;
        }

        /// <summary>Reads what is there behind what came before; false when the client is gone.</summary>
        bool Receive()
        {
            if (start == end)
            {
                start = 0;
                end = 0;
            }
            else if (end == input.Length && start > 0)
            {
                Use(input);
            }
            else if (end == input.Length)
            {
                Use(new byte[2 * input.Length]);
            }
            int count = socket.Receive(input, end, input.Length - end, SocketFlags.None);
            end += count;
            return count > 0;
        }

        /// <summary>Moves what is not used yet to the start of this buffer.</summary>
        void Use(byte[] buffer)
        {
            Buffer.BlockCopy(input, start, buffer, 0, end - start);
            end -= start;
            start = 0;
            input = buffer;
        }

        /// <summary>Sends the answer in one call.</summary>
        void Send(int status, string allow, bool goesOn, bool hasBody)
        {
            string kind = status == 200 ? "application/json" : "text/plain; charset=utf-8";
            string head = "HTTP/1.1 " + status + " " + Reason(status)
                + "\r\ncontent-type: " + kind
                + "\r\ncontent-length: " + answer.Length
                + (allow == null ? "" : "\r\nallow: " + allow)
                + (goesOn ? "\r\n\r\n" : "\r\nconnection: close\r\n\r\n");
            int size = hasBody ? (int)answer.Length : 0;
            int length = head.Length + size;
            if (output.Length < length)
            {
                output = new byte[length];
            }
            Encoding.ASCII.GetBytes(head, 0, head.Length, output, 0);
            Buffer.BlockCopy(answer.GetBuffer(), 0, output, head.Length, size);
            SendAll(output, length);
        }

        void SendAll(byte[] bytes, int length)
        {
            for (int sent = 0; sent < length;)
            {
                sent += socket.Send(bytes, sent, length - sent, SocketFlags.None);
            }
        }

        /// <summary>Reads on for a moment: unread bytes would make the kernel discard the answer.</summary>
        void Linger()
        {
            socket.Shutdown(SocketShutdown.Send);
            socket.ReceiveTimeout = 1000;
            for (int read = 0, count = 1; count > 0 && read < Message.BodyLimit; read += count)
            {
                count = socket.Receive(input, 0, input.Length, SocketFlags.None);
            }
        }

        void Shrink()
        {
            if (input.Length + chunks.Length + output.Length + answer.Capacity <= KeptSize)
            {
                return;
            }
            Use(new byte[Math.Max(end - start, 8 << 10)]);
            chunks = new byte[0];
            output = new byte[4 << 10];
            answer = new MemoryStream(2048);
        }

        static string Reason(int status)
        {
            switch (status)
            {
                case 200: return "OK";
                case 404: return "Not Found";
                case 405: return "Method Not Allowed";
                case 413: return "Content Too Large";
                case 417: return "Expectation Failed";
                case 431: return "Request Header Fields Too Large";
                case 501: return "Not Implemented";
                case 505: return "HTTP Version Not Supported";
                default: return "Bad Request";
            }
        }
    }
}
