// Requests to the API.  The token is sent as a header, never in an address.

const MAX_AGE = 1;
const MOST_KEPT = 40;
/** Characters of a body without an ETag that is kept, to see whether the next one is the same. */
const MOST_TEXT = 262_144;
/** Milliseconds for which a read waits: a network that drops packets would let it wait for minutes. */
const PATIENCE = 60_000;

/** An answer that is an error, or none at all (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} kind
   * @param {string} message
   */
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

/**
 * @param {number} status
 * @param {any} body
 */
function faultOf(status, body) {
  const { error, title, description } = body ?? {};
  const message = error?.message ?? title ?? description;
  return new ApiError(status, error?.type ?? "", message || `The API answered ${status}.`);
}

/**
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
async function answered(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof DOMException && error.name === "TimeoutError") throw new ApiError(0, "Timeout", "The API has not answered within a minute.");
    throw new ApiError(0, "Unreachable", "The API does not answer. Is the service running, and the network up?");
  }
}

/**
 * @param {string} text
 * @returns {any}
 */
function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** @param {Response} response */
async function bodyOf(response) {
  return parsed(await answered(response.text()));
}

/**
 * Request something besides the API proper: settings or login.
 *
 * @param {string} path
 * @param {object} [body]
 */
export async function plain(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await answered(fetch(new URL(path, document.baseURI), { ...options, credentials: "omit" }));
  const answer = await bodyOf(response);
  if (!response.ok) throw faultOf(response.status, answer);
  return answer;
}

/** @typedef {{etag: string | null, body: any, text: string | null}} CacheEntry */

/** A project's part of the API, or for admins also what lies outside of it. */
export class Api {
  /**
   * @param {Session} session
   * @param {() => void} expired is called when the API does not know the token any more.
   */
  constructor(session, expired) {
    this.session = session;
    this._expired = expired;
    /** @type {Map<string, CacheEntry>} */
    this._kept = new Map();
  }

  /**
   * Return the body of a path below the project, the same one while it has not changed.
   *
   * @param {string} path
   * @param {{fresh?: boolean, outside?: boolean}} [options] fresh: an answer that is a second old will not do; outside: the path is not
   *   below the project.
   * @returns {Promise<any>}
   */
  async get(path, { fresh = false, outside = false } = {}) {
    const entry = this._kept.get(path);
    const headers = { "Cache-Control": fresh ? "max-age=0" : `max-age=${MAX_AGE}`, ...(entry?.etag && { "If-None-Match": entry.etag }) };
    const response = await this._fetch(path, { headers, signal: AbortSignal.timeout(PATIENCE), cache: "no-store" }, outside);
    if (response.status === 304 && entry) return entry.body;
    const text = await answered(response.text());
    if (!response.ok) throw this._fault(response.status, parsed(text));
    if (entry && text === entry.text) return entry.body;
    return this._keep(path, text, response.headers.get("ETag"));
  }

  /**
   * Send a request that changes something, or computes; return its body.
   *
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   * @param {{outside?: boolean}} [options]
   * @returns {Promise<any>}
   */
  async send(method, path, body, { outside = false } = {}) {
    /** @type {Record<string, string>} */
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const response = await this._fetch(path, { method, headers, body: sent, cache: "no-store" }, outside);
    const answer = await bodyOf(response);
    if (!response.ok) throw this._fault(response.status, answer);
    return answer;
  }

  /**
   * @param {string} path
   * @param {RequestInit & {headers: Record<string, string>}} options
   * @param {boolean} outside
   */
  _fetch(path, options, outside) {
    const { token } = this.session;
    const headers = { Accept: "application/json", ...options.headers, ...(token && { "X-Auth-Token": token }) };
    const below = outside ? path : `v1/${encodeURIComponent(this.session.project.id)}/${path}`;
    return answered(fetch(new URL(`../${below}`, document.baseURI), { ...options, headers, credentials: "omit" }));
  }

  /**
   * @param {number} status
   * @param {any} body
   */
  _fault(status, body) {
    if (status === 401) this._expired();
    return faultOf(status, body);
  }

  /**
   * Keep a body for as long as it does not change; return it.
   *
   * @param {string} path
   * @param {string} text
   * @param {string | null} etag
   */
  _keep(path, text, etag) {
    const body = parsed(text);
    this._kept.delete(path);
    if (etag || text.length < MOST_TEXT) this._kept.set(path, { etag, body, text: etag ? null : text });
    for (const oldest of this._kept.keys()) {
      if (this._kept.size <= MOST_KEPT) break;
      this._kept.delete(oldest);
    }
    return body;
  }
}

/**
 * Return the path of a stack below the project.
 *
 * @param {string} name
 * @param {string} id
 * @param {...string} more
 */
export function stackPath(name, id, ...more) {
  return ["stacks", name, id, ...more].map(encodeURIComponent).join("/");
}
