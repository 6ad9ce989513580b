// The HTTP shell: routes, bodies, listening.
import { isUtf8 } from 'node:buffer'
import { unlinkSync } from 'node:fs'
import cluster from 'node:cluster'
import Fastify from 'fastify'
import { decide } from './decide.mjs'
import { createToken } from './token.mjs'

// Largest message, as in the other languages.
const BODY_LIMIT = 16 << 20

/** Serves at this address; closing what it gives finishes what is under way. */
export async function serve (address, secret) {
  const app = Fastify({ bodyLimit: BODY_LIMIT, forceCloseConnections: 'idle' })
  // A field called `__proto__` is a field; it comes back like any other.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, readMessage)
  for (const path of ['/static-subgraph', '/guid-response', '/client-awareness']) {
    route(app, 'POST', path, request => decide(path, request.body, secret))
  }
  route(app, 'POST', '/create-jwt', request => createToken(request.body, secret))
  route(app, 'GET', '/health', () => ({ status: 'UP' }))
  if (address.path && cluster.isPrimary) clear(address.path)
  await app.listen(address)
  return app
}

function route (app, method, path, answer) {
  app.route({ method, url: path, handler: (request, reply) => reply.type('application/json').send(JSON.stringify(answer(request))) })
  const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'].filter(other => other !== method && (method !== 'GET' || other !== 'HEAD'))
  app.route({ method: others, url: path, handler: (request, reply) => reply.code(405).header('allow', method).send() })
}

// A number that may be beyond a double, which JSON.stringify would replace by null.
const PERHAPS_INFINITE = /[\d.][eE]\+?\d{3,}\s*[,\]}]|\d{309}/

function finite (key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('a number is too large')
  return value
}

function readMessage (request, body, done) {
  try {
    if (!isUtf8(body)) throw new TypeError('expected UTF-8')
    const text = body.toString()
    const message = PERHAPS_INFINITE.test(text) ? JSON.parse(text, finite) : JSON.parse(text)
    if (message === null || typeof message !== 'object' || Array.isArray(message)) {
      throw new TypeError('expected an object')
    }
    done(null, message)
  } catch (error) {
    error.statusCode = 400
    done(error)
  }
}

/** What a killed predecessor left behind would be in the way. */
export function clear (path) {
  try {
    unlinkSync(path)
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
}
