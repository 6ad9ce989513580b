// The pure decision: which message is changed, and how.
import { randomUUID } from 'node:crypto'
import { clientOf } from './token.mjs'

/** Answers one message, changing it only at the stage that the endpoint is for. */
export function decide (endpoint, message, secret) {
  switch (`${endpoint} ${message.stage}`) {
    case '/static-subgraph SubgraphRequest':
      return addSource(message)
    case '/guid-response RouterResponse':
      return addIds(message)
    case '/client-awareness RouterRequest':
      return identifyClient(message, secret)
    default:
      return message
  }
}

function addSource (message) {
  setHeader(message, 'source', ['coprocessor'])
  return message
}

function addIds (message) {
  setHeader(message, 'GUID', Array.from({ length: 10 }, () => randomUUID()))
  return message
}

function identifyClient (message, secret) {
  const client = clientOf(message.headers?.authentication?.[0], secret)
  if (client) {
    setHeader(message, 'apollographql-client-name', [client.name])
    setHeader(message, 'apollographql-client-version', [client.version])
  } else {
    message.control = { break: 401 }
  }
  return message
}

/** Does nothing when the headers were not sent. */
function setHeader (message, name, values) {
  const { headers } = message
  if (headers !== null && typeof headers === 'object' && !Array.isArray(headers)) headers[name] = values
}
