using System;
using System.Security.Cryptography;
using System.Text;
using System.Threading;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Coprocessor
{
    /// <summary>Who sent a request.</summary>
    sealed class Client
    {
        public readonly string Name;
        public readonly string Version;

        public Client(string name, string version)
        {
            Name = name;
            Version = version;
        }
    }

    /// <summary>What tokens are signed and checked with.</summary>
    sealed class Keys
    {
        const string Header = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";

        /// <summary>One for each thread, for it holds the state of a signature.</summary>
        readonly ThreadLocal<HMACSHA256> algorithm;

        public Keys(string secret)
        {
            byte[] key = Encoding.UTF8.GetBytes(secret);
            algorithm = new ThreadLocal<HMACSHA256>(() => new HMACSHA256(key));
        }

        /// <summary>The client that a header value names if its token can be believed, else null.</summary>
        public Client Client(string value)
        {
            int space = value.IndexOf(' ');
            if (space < 0 || !value.Substring(0, space).Equals("bearer", StringComparison.OrdinalIgnoreCase))
            {
                return null;
            }
            JObject claims = Claims(value.Substring(space + 1));
            if (claims == null || !Holds(claims))
            {
                return null;
            }
            return new Client(Text(claims["client_name"], "coprocessor"), Text(claims["client_version"], "loadtest"));
        }

        /// <summary>Answers a wish for a token.</summary>
        public JObject Create(JObject wish)
        {
            var claims = new JObject(
                new JProperty("client_name", wish["clientName"] ?? "coprocessor"),
                new JProperty("client_version", wish["clientVersion"] ?? "loadtest"));
            string signed = Encode(Encoding.UTF8.GetBytes(Header)) + "." + Encode(Message.Write(claims));
            return new JObject(new JProperty("token", signed + "." + Encode(Sign(signed))));
        }

        /// <summary>What a token claims if its signature is right, else null.</summary>
        JObject Claims(string token)
        {
            string[] parts = token.Split('.');
            if (parts.Length != 3)
            {
                return null;
            }
            if (!AreEqual(parts[2], Encode(Sign(parts[0] + "." + parts[1]))))
            {
                return null;
            }
            // Signed with our key, and yet not to be believed if it names another algorithm.
            JObject header = Read(parts[0]);
            JToken name = header?["alg"];
            bool isOurs = name != null && name.Type == JTokenType.String && (string)name == "HS256";
            return isOurs ? Read(parts[1]) : null;
        }

        byte[] Sign(string text) => algorithm.Value.ComputeHash(Encoding.UTF8.GetBytes(text));

        static bool Holds(JObject claims)
        {
            double now = (DateTime.UtcNow - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).TotalSeconds;
            return IsTime(claims["exp"], out double? expires) && IsTime(claims["nbf"], out double? begins)
                && !(now >= expires) && !(now < begins);
        }

        /// <summary>Is it a number, or absent?</summary>
        static bool IsTime(JToken claim, out double? time)
        {
            bool isNumber = claim != null && (claim.Type == JTokenType.Integer || claim.Type == JTokenType.Float);
            time = isNumber ? (double?)claim : null;
            return claim == null || isNumber;
        }

        static string Text(JToken claim, string otherwise)
        {
            if (claim == null || claim.Type == JTokenType.Null)
            {
                return otherwise;
            }
            return claim.Type == JTokenType.String ? (string)claim : claim.ToString(Formatting.None);
        }

        static JObject Read(string part)
        {
            byte[] bytes = Decode(part);
            return bytes != null && Message.Read(bytes, bytes.Length, out JObject read) == null ? read : null;
        }

        static string Encode(byte[] bytes) =>
            Convert.ToBase64String(bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_');

        /// <summary>The bytes of base64url, or null.</summary>
        static byte[] Decode(string text)
        {
            foreach (char letter in text)
            {
                bool isDigit = letter >= '0' && letter <= '9' || letter >= 'a' && letter <= 'z'
                    || letter >= 'A' && letter <= 'Z' || letter == '-' || letter == '_';
                if (!isDigit)
                {
                    return null;
                }
            }
            if (text.Length % 4 == 1)
            {
                return null;
            }
            string padding = new string('=', (4 - text.Length % 4) % 4);
            return Convert.FromBase64String(text.Replace('-', '+').Replace('_', '/') + padding);
        }

        /// <summary>Takes as long for a wrong signature as for the right one.</summary>
        static bool AreEqual(string left, string right)
        {
            int difference = left.Length ^ right.Length;
            for (int index = 0; index < left.Length && index < right.Length; index++)
            {
                difference |= left[index] ^ right[index];
            }
            return difference == 0;
        }
    }
}
