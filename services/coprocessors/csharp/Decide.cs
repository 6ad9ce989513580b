using System;
using Newtonsoft.Json.Linq;

namespace Coprocessor
{
    /// <summary>Which endpoint a message came to.</summary>
    enum Endpoint { StaticSubgraph, GuidResponse, ClientAwareness }

    /// <summary>The pure decision: which message is changed, and how.</summary>
    static class Decision
    {
        /// <summary>Answers one message, changing it only at the stage that the endpoint is for.</summary>
        public static JObject Decide(Endpoint endpoint, JObject message, Keys keys)
        {
            string stage = Text(message["stage"]);
            if (endpoint == Endpoint.StaticSubgraph && stage == "SubgraphRequest")
            {
                return AddSource(message);
            }
            else if (endpoint == Endpoint.GuidResponse && stage == "RouterResponse")
            {
                return AddIds(message);
            }
            else if (endpoint == Endpoint.ClientAwareness && stage == "RouterRequest")
            {
                return IdentifyClient(message, keys);
            }
            else
            {
                return message;
            }
        }

        static JObject AddSource(JObject message)
        {
            SetHeader(message, "source", new JArray("coprocessor"));
            return message;
        }

        static JObject AddIds(JObject message)
        {
            var ids = new JArray();
            for (int count = 0; count < 10; count++)
            {
                ids.Add(Guid.NewGuid().ToString());
            }
            SetHeader(message, "GUID", ids);
            return message;
        }

        static JObject IdentifyClient(JObject message, Keys keys)
        {
            var headers = message["headers"] as JObject;
            var values = headers?["authentication"] as JArray;
            string value = values != null && values.Count > 0 ? Text(values[0]) : null;
            Client client = value == null ? null : keys.Client(value);
            if (client == null)
            {
                message["control"] = new JObject(new JProperty("break", 401));
            }
            else
            {
                SetHeader(message, "apollographql-client-name", new JArray(client.Name));
                SetHeader(message, "apollographql-client-version", new JArray(client.Version));
            }
            return message;
        }

        /// <summary>Does nothing when the headers were not sent.</summary>
        static void SetHeader(JObject message, string name, JArray values)
        {
            if (message["headers"] is JObject headers)
            {
                headers[name] = values;
            }
        }

        static string Text(JToken token) =>
            token != null && token.Type == JTokenType.String ? (string)token : null;
    }
}
