using System;
using System.Globalization;
using System.IO;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Coprocessor
{
    /// <summary>Messages from bytes and to bytes.</summary>
    static class Message
    {
        /// <summary>Largest message, as in the other languages.</summary>
        public const int BodyLimit = 16 << 20;

        static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);
        static readonly UTF8Encoding Lenient = new UTF8Encoding(false);

        /// <summary>Reads a message, or says why these bytes are none.</summary>
        public static string Read(byte[] bytes, int length, out JObject message)
        {
            message = null;
            int place = Grammar.Mistake(bytes, length);
            if (place >= 0)
            {
                return "expected one JSON object, found something else at byte " + place;
            }
            try
            {
                // Texts stay texts, also those that look like a date.
                var reader = new JsonTextReader(new StringReader(Strict.GetString(bytes, 0, length)))
                {
                    DateParseHandling = DateParseHandling.None,
                    Culture = CultureInfo.InvariantCulture,
                };
                message = JObject.Load(reader);
                return null;
            }
            catch (Exception error) when (error is JsonException || error is DecoderFallbackException
                || error is OverflowException || error is FormatException)
            {
                return error.Message;
            }
        }

        /// <summary>Writes a message.</summary>
        public static byte[] Write(JObject message)
        {
            var bytes = new MemoryStream(1024);
            WriteTo(bytes, message);
            return bytes.ToArray();
        }

        /// <summary>Writes a message behind what the stream holds.</summary>
        public static void WriteTo(Stream stream, JObject message)
        {
            using (var text = new StreamWriter(stream, Lenient, 1024, true))
            {
                message.WriteTo(new JsonTextWriter(text));
            }
        }
    }
}
