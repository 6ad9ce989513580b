using System;
using System.IO;
using System.Net;
using System.Net.Sockets;
using Mono.Unix;
using Mono.Unix.Native;

namespace Coprocessor
{
    /// <summary>The coprocessor in C# on Mono: entry, port and stop. ../../CONTRACT.md says what it does.</summary>
    static class Program
    {
        static int Main()
        {
            var told = new[] { new UnixSignal(Signum.SIGTERM), new UnixSignal(Signum.SIGINT) };
            var serving = new Serving(Listen(), new Keys(Variable("JWT_SECRET", "apollo")));
            UnixSignal.WaitAny(told);
            serving.Stop();
            return 0;
        }

        static Socket Listen()
        {
            string path = Variable("SOCKET", "");
            EndPoint place;
            Socket listener;
            if (path != "")
            {
                // What a killed predecessor left behind would be in the way.
                File.Delete(path);
                place = new UnixEndPoint(path);
                listener = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
            }
            else
            {
                place = new IPEndPoint(IPAddress.Any, int.Parse(Variable("PORT", "3000")));
                listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
                listener.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.ReuseAddress, true);
            }
            listener.Bind(place);
            listener.Listen(1024);
            return listener;
        }

        static string Variable(string name, string otherwise) =>
            Environment.GetEnvironmentVariable(name) ?? otherwise;
    }
}
