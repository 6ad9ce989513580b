// The token check.
import jwt from 'jsonwebtoken'

/** The client that a header value names, if its token can be believed. */
export function clientOf (value, secret) {
  const [, token] = /^bearer (.+)$/i.exec(value) ?? []
  if (!token) return undefined
  try {
    const claims = jwt.verify(token, secret, { algorithms: ['HS256'] })
    if (typeof claims !== 'object' || Array.isArray(claims)) return undefined
    return {
      name: String(claims.client_name ?? 'coprocessor'),
      version: String(claims.client_version ?? 'loadtest')
    }
  } catch {
    return undefined
  }
}

/** Answers a wish for a token. */
export function createToken (wish, secret) {
  const claims = {
    client_name: wish.clientName ?? 'coprocessor',
    client_version: wish.clientVersion ?? 'loadtest'
  }
  return { token: jwt.sign(claims, secret, { algorithm: 'HS256' }) }
}
