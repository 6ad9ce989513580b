using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Net.Sockets;
using System.Threading;

namespace Coprocessor
{
    /// <summary>The connections, a thread each, until told to stop.</summary>
    sealed class Serving
    {
        /// <summary>How long requests under way may take after a stop, in milliseconds.</summary>
        const int Grace = 9000;
        /// <summary>How long a client may keep a thread waiting, in milliseconds.</summary>
        const int Patience = 75000;
        /// <summary>Enough for the deepest message.</summary>
        const int StackSize = 512 << 10;

        readonly Socket listener;
        readonly Routes routes;
        readonly HashSet<Connection> open = new HashSet<Connection>();
        bool isStopping;

        public Serving(Socket listener, Keys keys)
        {
            this.listener = listener;
            routes = new Routes(keys);
            new Thread(Accept) { IsBackground = true }.Start();
        }

        void Accept()
        {
            while (true)
            {
                try
                {
                    Begin(listener.Accept());
                }
                catch (SocketException) when (!IsStopping)
                {
                    // One client that went away before it was let in, or no descriptor left for it.
                    Thread.Sleep(10);
                }
                catch (Exception) when (IsStopping)
                {
                    return;
                }
            }
        }

        void Begin(Socket socket)
        {
            if (socket.AddressFamily == AddressFamily.InterNetwork)
            {
                // An answer is one write; waiting for more would only delay it.
                socket.NoDelay = true;
            }
            socket.ReceiveTimeout = Patience;
            socket.SendTimeout = Patience;
            var connection = new Connection(socket, routes);
            lock (open)
            {
                open.Add(connection);
                if (isStopping)
                {
                    connection.Leave();
                }
            }
            new Thread(() => Serve(connection), StackSize) { IsBackground = true }.Start();
        }

        void Serve(Connection connection)
        {
            try
            {
                connection.Serve();
            }
            catch (SocketException)
            {
                // The client is gone, so the error cannot be sent.
            }
            catch (Exception defect)
            {
                Console.Error.WriteLine(defect);
            }
            finally
            {
                lock (open)
                {
                    // Both under one lock, so that the stop never meets a connection that is closed already.
                    connection.Dispose();
                    open.Remove(connection);
                    Monitor.PulseAll(open);
                }
            }
        }

        bool IsStopping
        {
            get
            {
                lock (open)
                {
                    return isStopping;
                }
            }
        }

        /// <summary>Takes no new connections and waits for the requests under way.</summary>
        public void Stop()
        {
            lock (open)
            {
                isStopping = true;
                listener.Close();
                foreach (Connection connection in open)
                {
                    connection.Leave();
                }
                var clock = Stopwatch.StartNew();
                while (open.Count > 0 && clock.ElapsedMilliseconds < Grace)
                {
                    Monitor.Wait(open, Grace - (int)clock.ElapsedMilliseconds);
                }
            }
        }
    }
}
