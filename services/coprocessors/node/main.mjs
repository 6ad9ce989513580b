// The coprocessor in Node: entry, port and stop. ../CONTRACT.md says what it does.
import cluster from 'node:cluster'
import { availableParallelism } from 'node:os'
import { clear, serve } from './serve.mjs'

const { PORT = '3000', SOCKET, JWT_SECRET = 'apollo', WORKERS } = process.env
const workers = Number(WORKERS ?? availableParallelism())

if (cluster.isPrimary && workers > 1) {
  await lead(workers)
} else {
  const server = await serve(SOCKET ? { path: SOCKET } : { port: Number(PORT), host: '::' }, JWT_SECRET)
  const stop = async () => {
    await server.close()
    process.exit(0)
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

// A process serves on one CPU; the others are served by processes of their own.
async function lead(workers) {
  if (SOCKET) clear(SOCKET)
  let stopping = false
  for (let started = 0; started < workers; started++) cluster.fork()
  cluster.on('exit', (worker, code) => {
    if (!stopping) {
      console.error(`worker ${worker.process.pid} ended with ${code}`)
      cluster.fork()
    } else if (Object.keys(cluster.workers).length === 0) {
      process.exit(0)
    }
  })
  const stop = () => {
    stopping = true
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM')
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}
