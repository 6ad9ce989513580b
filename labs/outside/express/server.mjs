// A list of 200 items on express: `node server.mjs PORT plain|compressed`
import compression from 'compression'
import express from 'express'

const [port, mode] = process.argv.slice(2)
const items = Array.from({ length: 200 }, (_, id) => ({ id, name: `item ${id}`, price: id * 7 % 100, inStock: id % 3 === 0 }))

const app = express()
if (mode === 'compressed') app.use(compression())
app.get('/', (_, response) => response.json(items))
const server = app.listen(Number(port), '127.0.0.1')
process.once('SIGTERM', () => {
  server.close()
  server.closeIdleConnections()
})
