// A list of 200 items on express: `node server.mjs PORT REDIS [helmet] [compression] [morgan] [sessions]`
import compression from 'compression'
import { RedisStore } from 'connect-redis'
import express from 'express'
import session from 'express-session'
import helmet from 'helmet'
import morgan from 'morgan'
import { createClient } from 'redis'

const [port, redis, ...layers] = process.argv.slice(2)
const known = ['helmet', 'compression', 'morgan', 'sessions']
const unknown = layers.find(layer => !known.includes(layer))
if (unknown) throw new Error(`expected ${known.join(', ')}, found ${unknown}`)

const items = Array.from({ length: 200 }, (_, id) => ({ id, name: `item ${id}`, price: id * 7 % 100, inStock: id % 3 === 0 }))
const seen = { lines: 0, sessions: 0 }

const app = express()
// Before the layers, so that the proofs do not count themselves.
app.get('/seen', (_, response) => response.json(seen))
if (layers.includes('morgan')) {
  // As with a file, morgan formats each line. The lines are counted, because a proof needs their number.
  app.use(morgan('combined', { stream: { write: line => { seen.lines += 1; process.stdout.write(line) } } }))
}
if (layers.includes('helmet')) app.use(helmet())
if (layers.includes('compression')) app.use(compression())
if (layers.includes('sessions')) {
  const client = await createClient({ url: redis }).connect()
  app.use(session({
    store: new RedisStore({ client }),
    secret: 'a secret of this lab',
    resave: false,
    saveUninitialized: false,
    // All requests of the load have the cookie of this session.
    genid: () => 'lab',
  }))
  app.use((request, _, next) => {
    if (request.session.user) seen.sessions += 1
    else request.session.user = 'ann'
    next()
  })
}
app.get('/', (_, response) => response.json(items))
app.listen(Number(port), '127.0.0.1')
process.once('SIGTERM', () => process.exit())
