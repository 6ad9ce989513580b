// A list of 50 items on express: `node server.mjs PORT none|counter|histogram|labels`
//
// `labels` is a histogram with labels for the method, the route and the status, as the examples of prom-client
// show it. All modes but `none` also collect the default metrics of the process.
import express from 'express'
import client from 'prom-client'

const [port, mode] = process.argv.slice(2)
const known = ['none', 'counter', 'histogram', 'labels']
if (!known.includes(mode)) throw new Error(`expected ${known.join(', ')}, found ${mode}`)

const items = Array.from({ length: 50 }, (_, id) => ({ id, name: `item ${id}`, price: id * 7 % 100, inStock: id % 3 === 0 }))
const app = express()
// Before the layer, so that the proofs do not count themselves.
app.get('/metrics', async (_, response) => response.type(client.register.contentType).send(await client.register.metrics()))

if (mode !== 'none') client.collectDefaultMetrics()
if (mode === 'counter') {
  const requests = new client.Counter({ name: 'requests_total', help: 'Requests.' })
  app.use((_request, _response, next) => {
    requests.inc()
    next()
  })
}
if (mode === 'histogram') {
  const seconds = new client.Histogram({ name: 'request_seconds', help: 'Time of a request.' })
  app.use((_, response, next) => {
    const end = seconds.startTimer()
    response.on('finish', () => end())
    next()
  })
}
if (mode === 'labels') {
  const seconds = new client.Histogram({ name: 'request_seconds', help: 'Time of a request.', labelNames: ['method', 'route', 'status'] })
  app.use((request, response, next) => {
    const end = seconds.startTimer()
    response.on('finish', () => end({ method: request.method, route: request.route?.path, status: response.statusCode }))
    next()
  })
}
app.get('/', (_, response) => response.json(items))
app.listen(Number(port), '127.0.0.1')
process.once('SIGTERM', () => process.exit())
