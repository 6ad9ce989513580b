// A list of 50 items on express: `node server.js PORT`. OpenTelemetry knows CommonJS without a loader.
const { trace } = require('@opentelemetry/api')
const express = require('express')

const [port] = process.argv.slice(2)
const items = Array.from({ length: 50 }, (_, id) => ({ id, name: `item ${id}`, price: id * 7 % 100, inStock: id % 3 === 0 }))

const app = express()
app.get('/', (_, response) => response.json(items))
// A request without a sampled trace has a span, too, which records nothing.
app.get('/traced', (_, response) => response.json({ traced: trace.getActiveSpan() !== undefined }))
app.listen(Number(port), '127.0.0.1')
process.once('SIGTERM', () => process.exit())
