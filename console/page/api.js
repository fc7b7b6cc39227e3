// Requests to the API.  The token is sent as a header, never in an address.

const MAX_AGE = 1;
const MOST_KEPT = 40;
/** Characters of a body without an ETag that is kept, to see whether the next one is the same. */
const MOST_TEXT = 262_144;
/** Milliseconds for which a read waits: a network that drops packets would let it wait for minutes. */
const PATIENCE = 60_000;

/** An answer that is an error, or none at all (status 0). */
export class ApiError extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

function faultOf(status, body) {
  const message = body?.error?.message ?? body?.title ?? body?.description;
  return new ApiError(status, body?.error?.type ?? "", message || `The API answered ${status}.`);
}

async function answered(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "TimeoutError") throw new ApiError(0, "Timeout", "The API has not answered within a minute.");
    throw new ApiError(0, "Unreachable", "The API does not answer. Is the service running, and the network up?");
  }
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

async function bodyOf(response) {
  return parsed(await answered(response.text()));
}

/** Request something beside the API proper: settings or login. */
export async function plain(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await answered(fetch(new URL(path, document.baseURI), { ...options, credentials: "omit" }));
  const got = await bodyOf(response);
  if (!response.ok) throw faultOf(response.status, got);
  return got;
}

/** The API for one project, with a token or none. */
export class Api {
  constructor(session, expired) {
    this.session = session;
    this._expired = expired;
    this._kept = new Map();
  }

  /** Return the body of a path below the project, the same one while it has not changed; `fresh` also reads what is a second old again. */
  async get(path, { fresh = false, outside = false } = {}) {
    const kept = this._kept.get(path);
    const headers = { "Cache-Control": fresh ? "max-age=0" : `max-age=${MAX_AGE}` };
    if (kept?.etag) headers["If-None-Match"] = kept.etag;
    const response = await this._fetch(path, { headers, signal: AbortSignal.timeout(PATIENCE), cache: "no-store" }, outside);
    if (response.status === 304 && kept) return kept.body;
    const text = await answered(response.text());
    if (response.ok && text === kept?.text) return kept.body;
    const body = parsed(text);
    if (!response.ok) throw this._fault(response.status, body);
    const etag = response.headers.get("ETag");
    if (etag || text.length < MOST_TEXT) this._keep(path, { etag, body, text: etag ? null : text });
    return body;
  }

  /** Send a request that changes something, or computes; return its body. */
  async send(method, path, body, { outside = false } = {}) {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const response = await this._fetch(path, { method, headers, body: sent, cache: "no-store" }, outside);
    const got = await bodyOf(response);
    if (!response.ok) throw this._fault(response.status, got);
    return got;
  }

  _fetch(path, options, outside) {
    const headers = { Accept: "application/json", ...options.headers };
    if (this.session.token) headers["X-Auth-Token"] = this.session.token;
    const below = outside ? path : `v1/${encodeURIComponent(this.session.project.id)}/${path}`;
    return answered(fetch(new URL(`../${below}`, document.baseURI), { ...options, headers, credentials: "omit" }));
  }

  _fault(status, body) {
    if (status === 401) this._expired();
    return faultOf(status, body);
  }

  _keep(path, entry) {
    this._kept.delete(path);
    this._kept.set(path, entry);
    if (this._kept.size > MOST_KEPT) this._kept.delete(this._kept.keys().next().value);
  }
}

/** Return the path of a stack below the project. */
export function stackPath(name, id, ...more) {
  return ["stacks", name, id, ...more].map(encodeURIComponent).join("/");
}
