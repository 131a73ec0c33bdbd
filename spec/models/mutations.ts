/** The models, and for each the mutations that break one rule and how each of them must fail. */

/**
 * A lost wake shows as a deadlock, a wait that burns the processor as a cycle. `none` says that the
 * protocol tolerates the change; README.md says why.
 */
export type Failure = "deadlock" | "cycle" | "none" | { assert: string };

/** One model in one variant. */
export interface Model {
  /** File name without `.pml`. */
  file: string;
  /** The variant. */
  defines?: string[];
  /** Makes the model smaller for the mutations, where that still shows them. */
  mutationDefines?: string[];
  /** Has half a million states or more, or mutations of it have. */
  large?: boolean;
  /** Takes minutes, or gigabytes: only with MILLRACE_TEST_ALL=1. */
  long?: boolean;
  /** By name, without `MUT_`. */
  mutations: Record<string, Failure>;
}

/** A waker that rings has to find a `wants` word that is armed. */
const FOR_NOBODY: Failure = { assert: "armed[" };

/** A file lost its name while somebody was in it. */
const LOST_NAME: Failure = { assert: "user[((3*path)+" };

/** What an owner of an endpoint has published was not read, or not as it was written. */
const NOT_READ: Failure = { assert: "h==tail[0]" };

/** A bit that the writer takes out has to be that of somebody who watches. */
const NOBODY_WATCHES: Failure = { assert: "watching[1]" };

/** A value of which one half is older than the other, or than its number. */
const TORN: Failure = { assert: "((x==v)&&(y==v))" };

/** A reader of the mailbox makes all its checks on the words of a part. */
const CORRUPT: Failure = { assert: "l==(taken+1)" };

export const models: Model[] = [
  {
    file: "park",
    mutations: {
      NO_RECHECK: "deadlock",
      CHECK_BEFORE_ARM: "deadlock",
      BELL_AFTER_RECHECK: "deadlock",
      BELL_AFTER_ARM: "deadlock",
      NO_REARM: "deadlock",
      NO_DISARM: FOR_NOBODY,
      NO_BIT: "deadlock",
      UNSIGNED: "deadlock",
      WAIT_BLIND: "deadlock",
      NEVER_SLEEPS: "cycle",
      NEVER_RING: "deadlock",
      NO_EXCHANGE: FOR_NOBODY,
      STORE_ZERO: FOR_NOBODY,
      NOTIFY_BEFORE_CURSOR: "deadlock",
      WANTS_BEFORE_CURSOR: "deadlock",
      NOTIFY_BEFORE_BELL: "deadlock",
    },
  },
  {
    file: "space",
    large: true,
    mutationDefines: ["N=3"],
    mutations: {
      LAST_UNIT: { assert: "head[0])%(4*16))<16" },
      OVER_HALF: "deadlock",
      NO_PAD: { assert: "(((t%16)+size)<=16)" },
      HOLD_BATCH: "deadlock",
      HOLD_HEAD: "deadlock",
      GREEDY: "deadlock",
      GREEDY_CAPPED: "none",
      UNSIGNED: "deadlock",
      NO_BIT: "deadlock",
      NO_EXCHANGE: FOR_NOBODY,
      WANTS_BEFORE_CURSOR: "deadlock",
    },
  },
  {
    file: "batch",
    large: true,
    mutations: {
      A_HOLDS_BATCH: "deadlock",
      A_HOLDS_HEAD: "deadlock",
      B_HOLDS_BATCH: "deadlock",
      B_HOLDS_HEAD: "deadlock",
      B_HOLDS_HEAD_FOR_SPACE: "deadlock",
      GREEDY_CAPPED: "deadlock",
      CURSOR_BEFORE_PAYLOAD: { assert: "what!=0" },
    },
  },
  {
    file: "close",
    large: true,
    mutations: {
      CLOSE_SILENT: "deadlock",
      CLOSE_PEER_ONLY: "deadlock",
      CLOSE_OWN_ONLY: "deadlock",
      CLOSE_BY_WANTS: "deadlock",
      RING_BEFORE_STATE: "deadlock",
      LOSER_SILENT: "deadlock",
      STATE_STORED: { assert: "state[0]>=2" },
      NO_RETRY: { assert: "(3!=3)||" },
      NO_LAST_LOAD: { assert: "last_tail" },
      NO_STATE_RECHECK: "deadlock",
      OWN_STATE_IGNORED: "deadlock",
    },
  },
  {
    file: "attach",
    mutations: {
      VACANT_FOREVER: "deadlock",
      MECHANISM_IGNORED: "deadlock",
      WAKES_FIRST: "none",
      ATTACH_SILENT: "none",
    },
  },
  {
    file: "order",
    mutations: {
      TAIL_PLAIN: "deadlock",
      TAIL_RELEASE: "deadlock",
      WANTS_PLAIN: "deadlock",
      DISARM_PLAIN: "none",
    },
  },
  {
    file: "order",
    defines: ["STORES_REORDER"],
    mutations: {
      TAIL_PLAIN: { assert: "value==1" },
      TAIL_RELEASE: "deadlock",
      WANTS_PLAIN: "deadlock",
      DISARM_PLAIN: "none",
    },
  },
  {
    file: "async",
    large: true,
    mutations: {
      CLEAR_SHARED: "deadlock",
      NO_DISARM: FOR_NOBODY,
      GIVEN_UP_ARMED: FOR_NOBODY,
      NOTIFY_ONE: "deadlock",
      ROUSE_ONE: "deadlock",
      SILENT_INBOX: "deadlock",
    },
  },
  {
    file: "mailbox",
    mutations: {
      PLAIN_SIGNAL: "deadlock",
      CLOSE_SILENT: "deadlock",
      NOTIFY_FIRST: "deadlock",
      WAIT_BLIND: "deadlock",
      SIGNAL_BEFORE_WORDS: CORRUPT,
      TAKE_BEFORE_COPY: { assert: "area==copy" },
      GIVES_UP: CORRUPT,
      DROPS_LAST: { assert: "delivered==" },
      CLOSE_SIGNAL_ONLY: "none",
    },
  },
  {
    file: "mailbox",
    defines: ["ORIGINAL_WRITER"],
    mutations: {
      NO_STATUS: "deadlock",
      STATUS_BEFORE_WORDS: CORRUPT,
      CLOSE_SIGNAL_ONLY: "deadlock",
      CLOSE_SIGNAL_FIRST: "deadlock",
      TWO_SLEEPERS: "deadlock",
    },
  },
  {
    file: "mailbox",
    defines: ["ORIGINAL_READER"],
    mutations: {
      PLAIN_SIGNAL: "deadlock",
      NO_SLICE: "deadlock",
      STATUS_ASLEEP: "cycle",
      CLOSE_SIGNAL_ONLY: "deadlock",
      CLOSE_SIGNAL_FIRST: "deadlock",
      CLOSE_ALL_WORDS: CORRUPT,
      NOTIFY_ONE: "deadlock",
    },
  },
  {
    file: "select",
    mutations: {
      ARM_ONE: "deadlock",
      ARM_CLEARS: "deadlock",
      TAKES_BOTH: "deadlock",
      BELL_BETWEEN: "deadlock",
      BELL_ONCE: "cycle",
      RECHECK_ONE: "deadlock",
      DISARM_ONE: { assert: "wants[(2*1)]==0" },
    },
  },
  {
    file: "select",
    defines: ["STAY_ARMED"],
    mutations: {
      STAY_BLIND: "deadlock",
      STAY_UNSEEN: "deadlock",
      STAY_BELL_LATE: "deadlock",
    },
  },
  {
    file: "died",
    mutations: {
      NO_SLICE: "deadlock",
      NO_LOCK: "cycle",
      DEAD_AT_ONCE: { assert: "received_tail==tail[0]" },
      NOTIFY_BEFORE_BELL: { assert: "dead[" },
    },
  },
  {
    file: "flood",
    mutations: {
      NO_DRAIN: "deadlock",
      ARM_ROOM_ONLY: "deadlock",
      HOLD_HEAD: "deadlock",
      TOO_MUCH: "deadlock",
      NO_LIMIT: { assert: "kept[e]<2" },
      INBOX_LAST: { assert: "what==delivered[e]" },
      ERROR_STOPS: "deadlock",
      ERROR_AT_ONCE: { assert: "what==delivered[e]" },
      ERROR_LOST: { assert: "==delivered[e]" },
    },
  },
  {
    file: "posted",
    large: true,
    mutations: {
      DATA_ONLY: "deadlock",
      OWN_RING_ONLY: "deadlock",
      NO_RECHECK: "deadlock",
      ASKS_FOR_ALL: "deadlock",
      PLACES_NOTHING: "cycle",
      PLACES_OWN_ONLY: "cycle",
    },
  },
  {
    file: "hub",
    large: true,
    mutations: {
      PUBLISHES_ONE: "deadlock",
      GIVES_BACK_ONE: "deadlock",
      RECHECK_DATA_ONLY: "deadlock",
      RECHECK_ROOM_ONLY: "deadlock",
    },
  },
  {
    file: "nap",
    mutations: {
      CLEARS: "deadlock",
      ARM_ONCE: "deadlock",
      SILENT_INBOX: "deadlock",
      SILENT_REST: "deadlock",
      NOTIFY_ONE: "deadlock",
      NO_DISARM: { assert: "needed==0" },
    },
  },
  {
    file: "mechanism",
    large: true,
    mutationDefines: ["CLIENTS=2"],
    mutations: {
      FIRST_CLIENT_ONLY: "deadlock",
      ANY_CAN_RING: "deadlock",
      DECIDES_ONCE: { assert: "state_before[0]==0" },
      MECHANISMS_FIRST: { assert: "state_before[0]==0" },
      VACANT_FOREVER: "deadlock",
    },
  },
  {
    file: "file",
    large: true,
    mutationDefines: ["NO_DEATH"],
    mutations: {
      LEFT_BLIND: LOST_NAME,
      LEFT_OWN: LOST_NAME,
      LEFT_UNLOCKED: { assert: "user[((3*f)+" },
      REMOVES_UNSEEN: LOST_NAME,
      RENAMES_OVER: { assert: "path==f" },
      NAMED_EARLY: LOST_NAME,
      NO_HEADER_LOCK: { assert: "path==f" },
      NO_CHECK: { assert: "path==f" },
      CHECKS_FIRST: { assert: "path==f" },
      UNLOCKS_EARLY: { assert: "path==f" },
      HEADER_KEPT: "deadlock",
      RECORD_LATE: { assert: "owner[" },
      LOCK_FIRST: { assert: "owner[" },
      LOCK_KEPT: "none",
    },
  },
  {
    file: "file",
    defines: ["VACATES"],
    large: true,
    mutationDefines: ["NO_DEATH"],
    mutations: {
      VACATES_UNLOCKED: LOST_NAME,
      VACATES_UNSEEN: { assert: "path==in[p]" },
    },
  },
  {
    file: "generation",
    large: true,
    mutationDefines: ["FIRST=1"],
    mutations: {
      VACATES_EARLY: NOT_READ,
      STATE_FIRST: { assert: "what==(((20*g)+10)+got_back)" },
      GENERATION_LAST: { assert: "what!=0" },
      CURSORS_KEPT: { assert: "what!=0" },
      BEGINS_AT_START: { assert: "what!=0" },
      WANTS_KEPT: FOR_NOBODY,
      WANTS_LAST: "deadlock",
    },
  },
  {
    file: "generation",
    defines: ["SUPERVISED"],
    mutations: {
      NO_LAST_LOOK: NOT_READ,
      SUPERVISOR_BLIND: { assert: "(seen/4)==0" },
      OWNER_ALIVE: NOT_READ,
      STATE_STORED: "none",
    },
  },
  {
    file: "generation",
    defines: ["SUPERVISED", "OWNERS=3"],
    long: true,
    mutations: { SUPERVISOR_BLIND: { assert: "(seen/4)==0" } },
  },
  {
    file: "rung",
    large: true,
    mutations: {
      BELL_BEFORE_BIT: "deadlock",
      BITS_BEFORE_BELL: "deadlock",
      OR_STORED: "deadlock",
      TAKEN_BY_STORE: "deadlock",
      CLEARED_LATER: "deadlock",
      NOT_REARMED: "deadlock",
      NO_RECHECK: "deadlock",
      STATE_WITHOUT_BIT: "deadlock",
      NOT_LOOKED_AT: "deadlock",
      STOPS_EARLY: "deadlock",
    },
  },
  {
    file: "rung",
    defines: ["DEATH"],
    large: true,
    mutations: { NO_FULL_LOOK: "cycle" },
  },
  {
    file: "property",
    large: true,
    mutations: {
      NO_CHECK: TORN,
      CHECK_FIRST: TORN,
      PUBLISH_FIRST: TORN,
      SEQUENCE_LATE: TORN,
      WAKE_FIRST: "deadlock",
      NO_WAKE: "deadlock",
      NO_RECHECK: "deadlock",
      BELL_LATE: "deadlock",
      SET_ONCE: "deadlock",
      BITS_STORED: NOBODY_WATCHES,
      CLEARED_BY_STORE: NOBODY_WATCHES,
      CLEARS_ALL: "deadlock",
      NEVER_CLEARED: NOBODY_WATCHES,
      TAKEN_BY_STORE: "deadlock",
      RINGS_ONE: "deadlock",
      CLOSE_SILENT: "deadlock",
      NO_LAST_LOAD: { assert: "got_last[" },
    },
  },
  {
    file: "property",
    defines: ["DEATH"],
    large: true,
    mutations: {
      ONE_SLOT: { assert: "(version!=v)" },
      STATE_UNSEEN: "cycle",
    },
  },
  {
    file: "call",
    mutations: {
      NO_SERVE: "deadlock",
      NO_TAKE_IN: "deadlock",
      ANSWERS_WAIT: "deadlock",
      INBOX_KEPT: "deadlock",
      SERVES_HALFWAY: { assert: "(part_kind[e]==0)" },
      FREES_EARLY: { assert: "(served[((e*((1+1)+1))+id)]==0)" },
      CANCELLED_SILENT: { assert: "(own_state[((e*((1+1)+1))+i)]==0)" },
      CANCEL_KEPT: { assert: "!(told[((e*((1+1)+1))+id)])" },
      OWED_AFTER: { assert: "(served[((e*((1+1)+1))+id)]==number)" },
      LATE_ENDS: { assert: "ends[((e*(2+1))+own[((e*((1+1)+1))+id)])]==1" },
      MATCHES_TOP: { assert: "(own[((e*((1+1)+1))+id)]==number)" },
      NO_DEPTH: { assert: "(depth<=1)" },
    },
  },
  {
    file: "call",
    defines: ["DEATH"],
    mutations: {
      NO_LOSS: "deadlock",
      LOSS_FIRST: { assert: "!(published[" },
      NOT_TOLD: { assert: "told[((e*((1+1)+1))+" },
    },
  },
  { file: "call", defines: ["DEATH", "DEPTH=2", "N=3"], large: true, mutations: {} },
  { file: "call", defines: ["DEPTH=2", "N=3"], long: true, mutations: {} },
  {
    file: "stream",
    mutations: {
      NO_CREDIT: { assert: "kept_units[e]<=3" },
      GIVEN_EARLY: { assert: "kept_units[e]<=3" },
      TOLD_AT_END: "deadlock",
      CREDIT_BETWEEN: "deadlock",
      CREDIT_WAITS: "deadlock",
      HALF_CLOSE: "deadlock",
      WRITES_FIRST: "deadlock",
    },
  },
  {
    file: "stream",
    defines: ["FLOOD"],
    mutations: { WRITES_FIRST: "deadlock", READS_IN_ORDER: "deadlock" },
  },
  {
    file: "stream",
    defines: ["MAY_CLOSE"],
    mutations: {
      NO_LINGER: { assert: "(q_len(wire[(1-e)])==0)||" },
      NO_HANG_UP: "deadlock",
      CLOSED_AT_ONCE: { assert: "taken[e]==finished[" },
      CLOSE_CUTS: { assert: "taken[e]==finished[" },
    },
  },
  {
    file: "stream",
    defines: ["DEATH"],
    mutations: { PART_COUNTS: { assert: "taken[e]<=sent[" }, LOSS_UNSEEN: "deadlock" },
  },
  {
    file: "fanout",
    large: true,
    mutations: {
      JOIN_LATE: { assert: "from[" },
      WANT_STORED: "deadlock",
      NO_RECHECK: "deadlock",
      JOINING_IGNORED: { assert: "from[" },
      WANT_BEFORE_TAIL: "deadlock",
      RINGS_ONE: "deadlock",
      ARMS_OTHER: "deadlock",
      NO_ROOM_RECHECK: "deadlock",
      END_UNTOLD: "deadlock",
      ENDED_LATE: "deadlock",
      ENDED_FIRST: "deadlock",
      ENDED_ANY: { assert: "(h==" },
    },
  },
  {
    file: "fanout",
    defines: ["LEAVES"],
    mutations: { LEAVE_SILENT: "deadlock" },
  },
  {
    file: "fanout",
    defines: ["DEATH"],
    long: true,
    mutations: { STATE_SILENT: "deadlock", DEAD_COUNTED: "cycle", NO_STATE_RECHECK: "deadlock" },
  },
  {
    file: "overrun",
    large: true,
    mutations: {
      FLOOR_LATE: { assert: "first==position" },
      FLOOR_BEFORE_TAIL: { assert: "t-position" },
      NO_RECHECK: "deadlock",
      VALIDATES_FIRST: { assert: "first==position" },
      NO_VALIDATE: { assert: "first==position" },
    },
  },
];
