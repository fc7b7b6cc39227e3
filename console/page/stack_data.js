// The data of a stack that its tabs share.

import { stackPath } from "./api.js";
import { EventLog } from "./event_log.js";
import { Source } from "./live.js";
import { resourcesOf } from "./shapes.js";

const DEEP = 8;

/** A stack with its graph and its events, each of which is read only while a tab needs it. */
export class StackData {
  /**
   * @param {import("./api.js").Api} api
   * @param {string} name
   * @param {string} id
   */
  constructor(api, name, id) {
    this.api = api;
    this.name = name;
    this.id = id;
    /** @type {Source<StackAnswer>} */
    this.stackSource = new Source(async (fresh) => (await api.get(`${this.path()}?resolve_outputs=false`, { fresh })).stack);
    this.graphSource = new Source((fresh) => this._readGraph(fresh));
    /** @type {unknown} the answer from which the graph was made */
    this._body = null;
    /** @type {StackGraph} */
    this._graph = { stack: { id, name }, resources: [] };
    const log = new EventLog((path, fresh) => api.get(path, { fresh }), this.path("events"), id);
    this.eventsSource = new Source((fresh) => log.read(fresh));
  }

  /**
   * Return the path of the stack, or of something below it.
   *
   * @param {...string} more
   */
  path(...more) {
    return stackPath(this.name, this.id, ...more);
  }

  get stack() {
    return this.stackSource.value ?? null;
  }

  get resources() {
    return this.graphSource.value?.resources ?? null;
  }

  get isBusy() {
    return this.stack === null || /IN_PROGRESS$/.test(this.stack.stack_status);
  }

  /**
   * Read the graph; return the same value where it has not changed.
   *
   * @param {boolean} fresh
   */
  async _readGraph(fresh) {
    const body = await this.api.get(`${this.path("graph")}?nested_depth=${DEEP}`, { fresh });
    if (body !== this._body) {
      this._body = body;
      this._graph = { ...body.graph, resources: resourcesOf(body.graph) };
    }
    return this._graph;
  }
}
