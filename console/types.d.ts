// The shapes that several modules of the page share: answers of the API as far as they are used, and what the views make of them.

/** What an element may hold. */
type Child = Node | string | number | boolean | null | undefined | readonly Child[];

/** The attributes of an element; `on` holds listeners, `style` CSS properties. */
interface Props {
  on?: Record<string, (event: any) => void>;
  style?: Record<string, string>;
  [attribute: string]: unknown;
}

/** The key of a state: the name of its CSS class. */
type StateKey = "ok" | "run" | "bad" | "held" | "wait" | "gone" | "off";

/** What a user chooses on a page, by the name in its address. */
type Choices = Record<string, string | null | undefined>;

interface Project {
  id: string;
  name: string;
}

/** Who uses the console. */
interface Session {
  token: string | null;
  expires?: string | null;
  user: string | null;
  roles: string[];
  project: Project;
  projects: Project[];
  /** Whether the API has said that the user is an admin. */
  isAdmin?: boolean;
}

/** The answer of the console's settings. */
interface Settings {
  auth: "none" | "keystone";
  version: string;
  project: string;
  horizon: string | null;
}

/** A stack as lists and `stack show` have it. */
interface StackAnswer {
  id: string;
  stack_name: string;
  stack_status: string;
  stack_status_reason: string | null;
  stack_owner: string | null;
  creation_time: string;
  updated_time: string | null;
  description?: string;
  tags?: string[] | null;
  breakpoints?: Breakpoint[];
  drift_status?: string;
  drifted_resources?: number;
  parameters?: Record<string, unknown>;
  outputs?: Output[];
}

interface DriftedResource {
  resource_name: string;
  resource_path: string;
  resource_type: string;
  physical_resource_id: string;
  stack_name: string;
  stack_id: string;
  difference: string;
  since: string;
  properties: { name: string; template: unknown; cloud: unknown }[];
}

interface Drift {
  drift_status: string;
  observed_time: string | null;
  unknown: string[];
  resources: DriftedResource[];
}

interface DriftRow {
  path: string;
  type: string;
  since: string;
  property: string;
  template: string;
  cloud: string;
}

interface Breakpoint {
  resource_path: string;
  resource_type: string;
  hook: string;
}

interface Output {
  output_key: string;
  output_value: unknown;
  output_error?: string;
  description?: string;
}

interface StackList {
  stacks: StackAnswer[];
  links?: unknown[];
}

interface StackCounts {
  total: number;
  by_status: Record<string, number>;
}

/** The task that is at a resource. */
interface Task {
  action: string;
  state: string;
  attempt?: number;
  conductor?: string | null;
  since?: string | null;
  waits_for?: string | null;
}

interface GraphResource {
  stack: string;
  name: string;
  type: string;
  physical_resource_id?: string | null;
  state: string;
  reason: string;
  required_by: string[];
  nested: string | null;
  breakpoint: string | null;
  task: Task | null;
  updated_time: string | null;
}

/** The answer of `…/graph`. */
interface GraphAnswer {
  stack: { id: string; name: string; deadline?: string | null; seconds_left?: number | null };
  nested_stacks: { id: string; name: string }[];
  resources: GraphResource[];
  more_resources?: boolean;
}

/** A resource as the views take it; `id`, `parent` and `requires` are unique in the tree. */
interface Resource {
  id: string;
  name: string;
  path: string;
  type: string;
  status: string;
  reason: string;
  held: string | null;
  task: Task | null;
  stack: string;
  stackName: string | null;
  child: string | null;
  physical: string | null;
  updated: string | null;
  requiredBy: string[];
  requires: string[];
  parent: string | null;
  hasChild: boolean;
  /** of a group, which is no resource of the stack */
  members?: Resource[];
}

/** The graph of a stack as the views take it. */
interface StackGraph {
  stack: GraphAnswer["stack"];
  more_resources?: boolean;
  resources: Resource[];
}

/** An event as the API has it. */
interface EventAnswer {
  id: string;
  resource_name: string;
  physical_resource_id: string | null;
  resource_status: string;
  resource_status_reason: string | null;
  event_time: string;
  time?: string;
  stack_name?: string;
  links?: { rel: string; href: string }[];
  attempt?: number | null;
  conductor?: string | null;
  ready_time?: string | null;
  claimed_time?: string | null;
}

/** An event as the views take it; `key` is that of its row in the timeline. */
interface StackEvent {
  id: string;
  key: string;
  name: string;
  path: string;
  stack: string | null;
  isStack: boolean;
  isRoot: boolean;
  status: string;
  reason: string;
  at: string;
  conductor: string | null;
  attempt: number | null;
  ready: string | null;
  claimed: string | null;
}

/** A bar of the timeline; instants are in seconds, `to` is null while it has not ended. */
interface Bar {
  key: string;
  kind: "try" | "hold";
  status: string;
  from: number;
  to: number | null;
  conductor: string | null;
  attempt: number | null;
  action: string;
  failed: boolean;
  reason: string;
  taken: string | null;
  again: number | null;
  waits: Wait[];
  ready: number | null;
}

/** A pause of an attempt: until its next try, or for something else. */
interface Wait {
  from: number;
  to: number | null;
  reason: string;
}

interface Row {
  key: string;
  name: string;
  path: string;
  isStack: boolean;
  bars: Bar[];
}

interface Point {
  x: number;
  y: number;
}

interface Size {
  id: string;
  w: number;
  h: number;
}

/** A resource at its place in the graph; `box` says that its nested stack is unfolded in it. */
interface SceneItem extends Point, Size {
  box: boolean;
  depth: number;
}

interface Scene {
  items: SceneItem[];
  edges: { from: string; to: string }[];
  width: number;
  height: number;
}

/** What places resources: a part of them. */
type Placed = Pick<Resource, "id" | "name" | "parent" | "requires">;

/** A conductor as the ring has it. */
interface Conductor {
  host: string;
  state: string;
  wanted?: string;
  wanted_by?: string | null;
  wanted_time?: string | null;
  wanted_reason?: string | null;
  alive: boolean;
  share: number;
  shards: number;
  weight: number;
  stacks_in_progress: number | null;
  threads: number | null;
  threads_busy: number | null;
  threads_hung: number | null;
  tasks_per_second: number;
  events_per_second: number;
  reported_time: string;
  started_time: string;
  ring_version: string | null;
  rpc_version: string | null;
  schema: string | null;
}

interface Ring {
  conductors: Conductor[];
  settled: boolean;
  health: string;
  sums: string;
}

/** What would move if conductors joined or left. */
interface RingPlan {
  summary: string;
  warnings: string[];
  shard_count: number;
  after: Record<string, number>;
  moves: { from: string; to: string; shards: number }[];
}

/** A task that a conductor has in hand. */
interface HeldTask {
  resource: string;
  stack: string;
  stack_name: string;
  project: string;
  action: string;
  type: string;
  attempt: number;
  seconds: number | null;
  hung: boolean;
  orphan: boolean;
  cancelled: boolean;
  polled: boolean;
}

/** A stack that makes no progress, of any project. */
interface StuckStack {
  id: string;
  stack_name: string;
  stack_status: string;
  project: string;
  causes: string[];
  since: string | null;
}

/** A reason of a diagnosis: what happens by itself, and what helps. */
interface Reason {
  cause?: string;
  why: string;
  next: string | null;
  commands?: string[];
}

/** The answer of `…/inspect`. */
interface Diagnosis {
  counts?: Record<string, number>;
  general?: Reason[];
  failed?: { resource: string; action?: string; reason: string; commands?: string[] }[];
  tasks?: (Reason & { resource: string; type: string; action: string; state: string; attempt?: number; held_by?: string | null; since?: string | null })[];
  more?: number;
}

/** A card of the tab "Why"; `mark` is a CSS class or "". */
interface Card {
  mark: string;
  resource: string | null;
  state: StateKey | null;
  label: string | null;
  type: string | null;
  why: string;
  next: string | null;
  since: string | null;
  facts: string[];
  commands: string[];
}

/** A parameter as POST /validate describes it. */
interface Parameter {
  Type?: string;
  Default?: unknown;
  Value?: unknown;
  NoEcho?: string | boolean;
  Label?: string;
  Description?: string;
  ConstraintDescription?: string;
  AllowedValues?: unknown[];
  AllowedPattern?: string;
  CustomConstraint?: string;
  [limit: string]: unknown;
}

interface Validation {
  Description?: string;
  Parameters?: Record<string, Parameter>;
  ParameterGroups?: { label?: string; description?: string; parameters: string[] }[];
}

/** A change of a resource by an update. */
interface Change {
  resource_name: string;
  resource_type: string;
  resource_status_reason?: string;
  parent_resource?: string;
  property_changes?: Record<string, { old: unknown; new: unknown }> | null;
}

/** What a preflight has found; the API's page describes it. */
interface Finding {
  kind: "quota" | "fit" | "surprise" | "not checked";
  path: string;
  message: string;
  needed: string;
  available: string;
  certainty: "certain" | "likely" | "not known";
  advice: string;
}

/** Shows a message for a while. */
type Say = (text: string, kind?: "done" | "error") => void;

/** What a page is made of; it returns a function that ends it. */
interface PageContext {
  api: import("./page/api.js").Api;
  main: HTMLElement;
  parts: string[];
  query: URLSearchParams;
  settings: Settings;
  remember: (choices: Choices) => void;
  say: Say;
  go: (hash: string) => void;
  isAdmin: () => boolean;
}

/** Ends a page; `now` reads it again, `tab` shows another part of it. */
interface Leave {
  (): void;
  now?: () => void;
  tab?: (key: string | undefined, query: URLSearchParams) => void;
}

/** What the panels of a stack are made of. */
interface PanelContext {
  api: import("./page/api.js").Api;
  data: import("./page/stack_data.js").StackData;
  settings: Settings;
  remember: (choices: Choices) => void;
  say: Say;
  go: (hash: string) => void;
  refresh: () => Promise<void>;
  hash: (tab: string | undefined, choices?: Choices) => string;
  open: (tab: string, choices?: Choices) => void;
}

/** A tab of a stack. */
interface Panel {
  view: import("./page/data_view.js").DataView;
  choose?: (query: URLSearchParams) => void;
  end?: () => void;
}
