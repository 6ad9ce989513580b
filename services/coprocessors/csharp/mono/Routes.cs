using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using Newtonsoft.Json.Linq;

namespace Coprocessor
{
    /// <summary>Which path takes which method, and what it answers.</summary>
    sealed class Routes
    {
        readonly Dictionary<string, Func<JObject, JObject>> posts;

        public Routes(Keys keys)
        {
            posts = new Dictionary<string, Func<JObject, JObject>>(StringComparer.Ordinal)
            {
                ["/static-subgraph"] = message => Decision.Decide(Endpoint.StaticSubgraph, message, keys),
                ["/guid-response"] = message => Decision.Decide(Endpoint.GuidResponse, message, keys),
                ["/client-awareness"] = message => Decision.Decide(Endpoint.ClientAwareness, message, keys),
                ["/create-jwt"] = keys.Create,
            };
        }

        /// <summary>Writes the answer's body and returns its status; `allow` is set when the method is wrong.</summary>
        public int Answer(Request request, Stream answer, out string allow)
        {
            bool isHealth = request.Path == "/health";
            if (!isHealth && !posts.ContainsKey(request.Path))
            {
                allow = null;
                return Say(answer, 404, "nothing is here");
            }
            allow = isHealth ? "GET" : "POST";
            if (request.Method != allow)
            {
                return Say(answer, 405, "this path takes " + allow);
            }
            allow = null;
            if (isHealth)
            {
                Message.WriteTo(answer, new JObject(new JProperty("status", "UP")));
                return 200;
            }
            string mistake = Message.Read(request.Body, request.Length, out JObject message);
            if (mistake != null)
            {
                return Say(answer, 400, mistake);
            }
            Message.WriteTo(answer, posts[request.Path](message));
            return 200;
        }

        static int Say(Stream answer, int status, string text)
        {
            byte[] bytes = Encoding.UTF8.GetBytes(text);
            answer.Write(bytes, 0, bytes.Length);
            return status;
        }
    }
}
