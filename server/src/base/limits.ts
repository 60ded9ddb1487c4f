/**
 * Every bound of the system, on one page. The unit is in the name, the source in the comment.
 */

export const KiB = 1024
export const MiB = 1024 * KiB

/** Any JSON body. Source: interface.md, Limits (invoke); the same elsewhere is ours. */
export const BODY_BYTES_MAX = 5 * MiB

/**
 * Memory that requests of one tenant may take for bodies, as much again for answers that are not taken yet, and for what
 * is made of tokens for destinations. What is short is not counted. Ours: decisions 0057 and 0059.
 */
export const QUOTA_BYTES_MAX = 32 * MiB
export const LARGE_BYTES_MIN = 64 * KiB

/** Requests of one tenant that wait for memory for their bodies; more are refused. Ours: decision 0057. */
export const LARGE_BODIES_WAITING_MAX = 256

/** How long a request waits for others of its tenant to release their quota. Ours: decision 0057. */
export const QUOTA_WAIT_MS_MAX = 10_000

/** How long a client may take nothing of a long answer, more or less. Ours: decision 0057. */
export const ANSWER_PAUSE_MS_MAX = 30_000

/**
 * Requests of one tenant at a time that read tokens; and those of them that may find much, and as many more that turn out
 * to. Ours: decisions 0057 and 0059.
 */
export const READS_AT_ONCE = 32
export const LARGE_READS_AT_ONCE = 4

/** Levels of arrays and objects in any JSON body. Ours: decision 0010. */
export const JSON_DEPTH_MAX = 512

/** Members, objects and arrays in any JSON body. Ours: a member with a name of its own takes a microsecond. */
export const JSON_PARTS_MAX = 200_000

/**
 * Members and items of arrays in any JSON body, what is empty counted for one. Ours: a body may hold so many texts of eight
 * characters, and each takes a tenth of a microsecond to read and as much to go through.
 */
export const JSON_ITEMS_MAX = 500_000

/** The path of a member in an error; what is longer is cut. Ours. */
export const ERROR_PATH_CHARS_MAX = 500

/** Header fields of one request; more is 431. Ours. */
export const HEADERS_MAX = 100

/** All request headers together. Ours; Node's own default. */
export const HEADER_BYTES_MAX = 16 * KiB

/** Time a client has to send all headers. Ours. */
export const HEADERS_TIMEOUT_MS = 10_000

/** Time a client has to send a whole request. Ours. */
export const REQUEST_TIMEOUT_MS = 30_000

/** How often both are looked at: a client may be that much later. Ours; Node's default is half a minute. */
export const TIMEOUTS_CHECK_MS = 1_000

/** How long a connection that has its last answer is kept, for that to be read. Ours. */
export const LINGER_MS = 5_000

/** Into how many pieces what comes meanwhile may fall: each takes time. Ours. */
export const LINGER_CHUNKS_MAX = 10_000

/**
 * Chunks that are read before everything else has its turn, some milliseconds: of all bodies that come in, and of all
 * answers of destinations. Ours.
 */
export const READ_CHUNKS_PER_TICK = 1_000

/** Requests that go on in one turn of the event loop, some milliseconds. Ours: more in a row are no quicker. */
export const TICK_BATCH_MAX = 128

/** Time an idle connection is kept for the next request. Ours. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000

/** What is in flight when the server is told to stop has this long to finish. */
export const SHUTDOWN_MS_MAX = 9_000

/** A caller's own trace id. Source: wire contract, cross-cutting. */
export const TRACE_ID_CHARS_MAX = 200

/** Decisions that the log shows of one request. Ours. */
export const DECISIONS_LOGGED_MAX = 100

/** An idempotency key. Ours. */
export const IDEMPOTENCY_KEY_CHARS_MAX = 400

/** How long a successful answer is replayed. Source: wire contract, idempotency. */
export const IDEMPOTENCY_LIFETIME_MS = 24 * 60 * 60 * 1000

/** How long a commit waits for the disk before whoever asked is told that nobody knows. Ours. */
export const COMMIT_WAIT_MS_MAX = 5_000

/** Things that one audit event names; an operation on more of them is several events. Ours. */
export const AUDIT_EVENT_ENTITIES_MAX = 1_000

/** How often audit events that no checkpoint covers yet are looked for. Ours: decision 0020. */
export const AUDIT_CHECKPOINT_MS = 1_000

/** Events that may follow the checkpoint for so long, by their own times, before that is suspicious. Ours. */
export const AUDIT_CHECKPOINT_LAG_MS_MAX = 60_000

/** How often audit events that are past their time are looked for. Ours. */
export const AUDIT_SWEEP_MS = 60 * 60 * 1000

/** Audit events that are read or removed at a time. Ours. */
export const AUDIT_EVENTS_AT_ONCE = 200

/** Things that are looked for in such events before others have a turn. Ours: a thousand take an eighth of a millisecond. */
export const AUDIT_THINGS_AT_ONCE = 5_000

/** Page of a list. Source: wire contract, pagination. */
export const PAGE_SIZE_DEFAULT = 20
export const PAGE_SIZE_MAX = 100

/** Names of applications, reactors, tenants. Source: interface.md, Limits. */
export const NAME_CHARS_MAX = 200

/** How long a changed application or a revoked key may still be honoured. Ours: decision 0006. */
export const IDENTITY_CACHE_MS = 1_000
export const IDENTITY_CACHE_ENTRIES_MAX = 10_000

/** Rows that are looked through at a time for what was sealed under an older key. Ours: decision 0037. */
export const ENVELOPE_ROWS_AT_ONCE = 128

/** What is sealed in them, of which a single row may have more. Ours. */
export const ENVELOPE_BYTES_AT_ONCE = 4 * MiB

/**
 * How long nothing may have turned up that was sealed under an older key before that is taken no more, and destroyed:
 * longer than any request takes from sealing to committing. Ours: decision 0037.
 */
export const KEY_RETIREMENT_MS = 30_000

/** Tenants whose data keys are replaced at the same time. Ours: decision 0037. */
export const ROTATIONS_AT_ONCE = 8

/** For how long keys are believed to be all there are, where several servers share a store. Ours: decision 0044. */
export const KEYS_BELIEVED_MS = 5_000

/**
 * How long a server that shares its store has known a data key when it begins to seal under it: by then all others have read
 * it, and whoever began before is done. Ours: decision 0044.
 */
export const KEY_ANNOUNCED_MS = 15_000

/** How often it is looked whether that time is over. */
export const KEY_ANNOUNCED_LOOK_MS = 500

/** Tenants whose keys are kept unwrapped, a few KiB each. Ours: decision 0005. */
export const TENANT_KEYS_CACHED_MAX = 1_000

/** Access rules of one application. Ours. */
export const RULES_MAX = 100

/** Destinations of one application, and one of them: a host name, a star before it and a port. Ours. */
export const DESTINATIONS_MAX = 100
export const DESTINATION_CHARS_MAX = 300

/** The destination of a proxy. Source: wire contract, pre-configured proxies. */
export const DESTINATION_URL_CHARS_MAX = 400

/** The code of a reactor. Source: wire contract, reactors. */
export const REACTOR_CODE_CHARS_MAX = 50_000

/** Different tokens that one invocation may name. Source: interface.md, Limits. */
export const REACTOR_TOKENS_MAX = 100

/** How long code may run while somebody waits for it. Source: wire contract, reactors. */
export const REACTOR_TIMEOUT_MS = 30_000

/** How long code may be asked to run while nobody waits. Source: interface.md, Limits. */
export const REACTOR_TIMEOUT_ASKED_MS_MIN = 10_000
export const REACTOR_TIMEOUT_ASKED_MS_MAX = 210_000

/** What code may return, as JSON, and the body of a response that it throws. Ours. */
export const REACTOR_RESULT_BYTES_MAX = 5 * MiB

/** A message that code throws; what is longer is not shown. Of one error, names and messages of each. Ours. */
export const REACTOR_MESSAGE_CHARS_MAX = 2_000
export const REACTOR_ERROR_NAME_CHARS_MAX = 200
export const REACTOR_ERRORS_MAX = 20

/** Headers of a response that code throws, and their names and values together. Ours. */
export const REACTOR_HEADERS_MAX = 50
export const REACTOR_HEADERS_CHARS_MAX = 8 * KiB

/** Values that are looked for in what code throws, all forms together; with more, nothing of it is shown. Ours. */
export const REDACTION_CHARS_MAX = 64 * KiB

/** What a proxy or a reactor is configured with; how long its members may be is ours. Source: as above. */
export const CONFIGURATION_ENTRIES_MAX = 25
export const CONFIGURATION_KEY_CHARS_MAX = 200
export const CONFIGURATION_VALUE_CHARS_MAX = 10_000

/** A key of a proxy that somebody sends. Ours; one of our own has 32. */
export const PROXY_KEY_CHARS_MAX = 100

/** Keys of one application at a time. Ours. */
export const APPLICATION_KEYS_MAX = 10

/** How long a session lives unless its authorisation says otherwise. Source: wire contract, sessions. */
export const SESSION_LIFETIME_MS = 3 * 60 * 1000

/** How long a session may live once it is authorised. Ours: nothing else takes its rights away. */
export const SESSION_LIFETIME_MS_MAX = 60 * 60 * 1000

/** Rules of one session, and conditions of one rule. Ours: each is weighed against all the grantor's. */
export const SESSION_RULES_MAX = 20
export const SESSION_CONDITIONS_MAX = 5

/** A nonce that somebody sends. Ours; one of our own has 32. */
export const NONCE_CHARS_MAX = 100

/** How long what comes in late for a deleted tenant is still removed: longer than any request. Ours. */
export const TENANT_CLEARING_MS = 60 * 60 * 1000

/** A container path, and how many of them one token may be in. Ours. */
export const CONTAINER_CHARS_MAX = 255
export const CONTAINERS_MAX = 10

/** A token id that the caller chose. Source: wire contract, ids. */
export const TOKEN_ID_CHARS_MIN = 3
export const TOKEN_ID_CHARS_MAX = 400

/** Tries to find an unused alias before a uuid is used instead. Ours. */
export const ALIAS_ATTEMPTS_MAX = 10

/** Tokens of one tokenize request, unless configured otherwise. Ours: bulk is first-class. */
export const TOKENIZE_TOKENS_MAX = 10_000

/** Milliseconds one payload may hold the event loop before others get a turn; a short one. Ours. */
export const YIELD_AFTER_MS = 0.25
export const SHORT_LIST_YIELD_AFTER_MS = 4

/** A fingerprint expression. Source: wire contract, tokens. */
export const FINGERPRINT_EXPRESSION_CHARS_MAX = 400

/** Any other expression. Ours. */
export const EXPRESSION_CHARS_MAX = 4_000

/** Search index expressions of one token. Ours. */
export const SEARCH_INDEXES_MAX = 20

/** Metadata of one token. Ours. */
export const METADATA_ENTRIES_MAX = 50
export const METADATA_KEY_CHARS_MAX = 200
export const METADATA_VALUE_CHARS_MAX = 2_000

/** How long a card security code is kept. Source: wire contract, card data. */
export const CVC_LIFETIME_MS = 60 * 60 * 1000

/** How often what is past its end is removed for good. Ours. */
export const SWEEP_EVERY_MS = 10_000

/** How long a transaction stays open, unless configured otherwise. Source: wire contract, transactions. */
export const TRANSACTION_LIFETIME_MS = 60 * 60 * 1000

/** How long after its end a transaction is remembered, to say how it ended. Ours. */
export const TRANSACTION_KEPT_MS = 24 * 60 * 60 * 1000

/** Tokens that one transaction may update and delete; what it creates is not counted. Ours. */
export const PENDING_MAX = 1_000

/**
 * What these tokens hold together, as they are and as they will be: it is moved in the step that commits the transaction,
 * while everybody waits. A token that holds no more than the second is not weighed. Ours: decision 0060.
 */
export const PENDING_BYTES_MAX = 32 * MiB
export const PENDING_LIGHT_BYTES_MAX = 32 * KiB

/** What a step removes of each kind of what nobody can reach any more, or a single row. Ours: decision 0060. */
export const SWEEP_BYTES_AT_ONCE = 8 * MiB

/**
 * Audit events that wait for the commit of one transaction: one for each change of each request, a
 * thousand tokens in one. They are written in the step that commits it, while everybody waits. Ours.
 */
export const PARKED_MAX = 10_000

/** What evaluating one expression may produce: as much as the largest data there can be. Ours. */
export const EXPRESSION_RESULT_CHARS_MAX = 5 * MiB

/** Characters that evaluating one template or one mask may read or write, all filters together. Ours. */
export const EXPRESSION_WORK_CHARS_MAX = 16 * MiB

/**
 * Characters of work that the expressions of one request may do together, for each token it makes, beyond
 * what one may do alone; and characters that all its masks may show. Ours.
 */
export const TOKEN_WORK_CHARS_MAX = 16 * KiB
export const MASKS_SHOWN_CHARS_MAX = 16 * MiB

/** The same of what is made by a public key, which strangers have: a short body is not to become a long answer. Ours. */
export const MASKS_SHOWN_PUBLIC_CHARS_MAX = 1 * MiB

/** Texts, numbers and other leaves, objects and arrays of one mask; and characters of its names and texts. Ours. */
export const MASK_NODES_MAX = 1_000
export const MASK_CHARS_MAX = 16 * KiB

/** The member `encryption` of a token, as JSON. Ours. */
export const ENCRYPTION_CHARS_MAX = 16 * KiB

/** Source text of the parsed templates that are kept. Ours. */
export const TEMPLATE_CACHE_CHARS_MAX = 1 * MiB

/** A search query. Source: wire contract, search. */
export const SEARCH_QUERY_CHARS_MAX = 200

/** Different tokens that one detokenize request may name. Ours. */
export const DETOKENIZE_TOKENS_MAX = 100

/** Locations in a payload that an error names, each with what is wrong there. Ours. */
export const ERRORS_NAMED_MAX = 100

/** Expressions in one detokenize request; and characters of their filters, each chain counted once. Ours. */
export const DETOKENIZE_REFERENCES_MAX = 10_000
export const DETOKENIZE_FILTERS_CHARS_MAX = 64 * KiB

/** Encrypted data that one request reads, or one page shows. Ours: a page of the largest tokens would fill memory. */
export const SHOWN_DATA_BYTES_MAX = 32 * MiB

/** The address in BT-PROXY-URL. Ours. */
export const PROXY_URL_CHARS_MAX = 2_048

/** Different tokens that one proxied request may name. Source: wire contract, expressions. */
export const PROXY_TOKENS_MAX = 100

/** How long the addresses of a name are remembered, and that it has none. Ours: decision 0023. */
export const EGRESS_NAME_MS = 5_000
export const EGRESS_NAMELESS_MS = 1_000

/** Names whose addresses are remembered. Ours. */
export const EGRESS_NAMES_MAX = 10_000

/** Addresses that one name may have; with more it is taken for one that has none. Ours. */
export const EGRESS_ADDRESSES_MAX = 100

/**
 * Names that are looked up at a time, of all owners and of one, and that wait for it, of one; each that is looked
 * up holds one of Node's four threads. Ours.
 */
export const EGRESS_LOOKUPS_MAX = 3
export const EGRESS_LOOKUPS_OF_ONE_MAX = 2
export const EGRESS_LOOKUPS_WAITING_MAX = 1_000

/** How long an answer about a name is waited for. Ours. */
export const EGRESS_LOOKUP_MS_MAX = 5_000

/** How long one address of several may take to accept a connection before the next is tried. Ours. */
export const EGRESS_CONNECT_MS_MAX = 3_000

/** How long it may take to open a tunnel. Ours. */
export const EGRESS_TUNNEL_MS_MAX = 10_000

/** Connections of one owner (see Egress.vet) to one destination, and requests that wait for one of them. Ours. */
export const EGRESS_CONNECTIONS_MAX = 64
export const EGRESS_WAITING_MAX = 256

/** Destinations whose connections are kept, all owners together. Ours. */
export const EGRESS_POOLS_MAX = 1_000

/**
 * How long an idle connection is kept for the next request, when the destination does not say how long it will
 * keep it, and at most; what it says is shortened by the margin. Ours: decision 0023.
 */
export const EGRESS_IDLE_MS = 4_000
export const EGRESS_IDLE_MS_MAX = 30_000
export const EGRESS_IDLE_MARGIN_MS = 2_000

/** Header section of a destination's answer: all header fields together. Ours. */
export const EGRESS_HEADER_SECTION_BYTES_MAX = 64 * KiB

/** The fields in it: each costs something, however short it is. Ours. */
export const EGRESS_HEADERS_MAX = 1_000

/** What is read of one answer at a time: what so many chunks like the last ones come to, within these. Ours. */
export const EGRESS_PORTION_CHUNKS = 64
export const EGRESS_PORTION_BYTES_MIN = 4 * KiB
export const EGRESS_PORTION_BYTES_MAX = 64 * KiB

/** How often calls are looked at for being late: a limit may be exceeded by that much. Ours. */
export const EGRESS_TICK_MS = 250

/** What all expressions of one proxied body may write in its place. Ours: escapes make up to six of one. */
export const RENDERED_BODY_BYTES_MAX = 32 * MiB

/** Parts of a multipart body that is sent on and has expressions in it. Ours. */
export const MULTIPART_PARTS_MAX = 1_000

/** All headers of one part of a multipart body; with more it is not well-formed. Ours. */
export const PART_HEADER_SECTION_BYTES_MAX = 4 * KiB

/** A content type of a body that is sent on; a longer one is not understood. Ours. */
export const CONTENT_TYPE_CHARS_MAX = 1_000

/** What a reactor throws, as JSON. Ours. */
export const REACTOR_ERROR_BYTES_MAX = 64 * KiB

/** What is heard of one run on a reactor's console, if anybody listens. Ours. */
export const REACTOR_OUTPUT_BYTES_MAX = 64 * KiB

/** A line of it in the log; a longer one goes on in another. Ours. */
export const REACTOR_LOG_LINE_CHARS_MAX = 4 * KiB

/** What is kept of a reactor's error output, where the runtime says why it dies. Ours. */
export const REACTOR_STDERR_BYTES_MAX = 64 * KiB

/** JavaScript objects of one reactor, in MiB. Ours. */
export const REACTOR_HEAP_MIB = 192

/** All memory of one reactor that it shares with nobody: more is taken for a bomb. Ours: decision 0030. */
export const REACTOR_MEMORY_BYTES_MAX = 320 * MiB

/** What it may ask the kernel for, used or not; below 800 MiB Node does not start. Ours: decision 0030. */
export const REACTOR_DATA_BYTES_MAX = 1024 * MiB

/** How often memory is looked at. Ours. */
export const REACTOR_WATCH_MS = 20

/** Prewarmed processes that wait for their first reactor, and how long after the service's start they are begun. Ours. */
export const REACTOR_PREWARMED = 2
export const REACTOR_PREWARM_AFTER_MS = 5_000

/** Runs at a time, of one tenant and of all, and those of one tenant that wait in the queue. Ours. */
export const REACTOR_RUNS_MAX = 64
export const REACTOR_TENANT_RUNS_MAX = 16
export const REACTOR_TENANT_WAITING_MAX = 64

/** How long a run waits in the queue, or for a process. Ours. */
export const REACTOR_WAIT_MS_MAX = 5_000

/** Memory of all processes that wait, frozen, for their reactor's next run; and how long one waits. Ours. */
export const REACTOR_WARM_BYTES_MAX = 512 * MiB
export const REACTOR_WARM_MS_MAX = 15 * 60 * 1000

/** Invocations of one tenant that nobody waits for, and that are still to be run or delivered. Ours. */
export const JOBS_MAX = 10_000

/** Such runs at a time, of all tenants and of one: those that somebody waits for have the rest. Ours. */
export const JOB_RUNS_AT_ONCE = 16
export const JOB_RUNS_OF_ONE_AT_ONCE = 4

/** How often one is begun whose caller lets it be run again when it was interrupted. Ours. */
export const JOB_RUNS_MAX = 3

/** How much longer than its code a run may take before somebody else takes it for lost. Ours. */
export const JOB_GRACE_MS = 60 * 1000

/** When a run that found no capacity is tried again, and for how long. Ours. */
export const JOB_BUSY_MS = 5 * 1000
export const JOB_WAIT_MS_MAX = 60 * 60 * 1000

/** How often it is looked whether something is due. Ours. */
export const JOB_POLL_MS = 500

/** Jobs that are taken at a time. Ours. */
export const JOBS_TAKEN = 32

/** What these hold, the last aside. Ours: decision 0060. */
export const JOBS_TAKEN_BYTES_MAX = 8 * MiB

/** How long a result is kept for whoever comes for it. Ours. */
export const JOB_RESULT_MS = 24 * 60 * 60 * 1000

/** The address of a callback. Ours. */
export const CALLBACK_URL_CHARS_MAX = 2_048

/** Callbacks under way at a time: of all tenants, of one, and to one receiver of one. Ours. */
export const CALLBACKS_AT_ONCE = 256
export const CALLBACKS_OF_ONE_AT_ONCE = 64
export const CALLBACKS_TO_ONE_AT_ONCE = 8

/** Up to here a body is put in order for its signature at once; longer ones elsewhere, which ends when nobody comes. Ours. */
export const CANONICAL_INLINE_CHARS = 8 * 1024
export const CANONICAL_IDLE_MS = 10 * 1000

/** How long a receiver may take for the header section of its answer, and when a callback under way is taken for lost. Ours. */
export const CALLBACK_TIMEOUT_MS = 15 * 1000
export const CALLBACK_CLAIM_MS = 60 * 1000

/** How much of that has to be left to begin to send: its name is looked up, the receiver answers, that is noted. Ours. */
export const CALLBACK_SENDING_MS = 30 * 1000

/** What is read of a receiver's answer before the connection is dropped. Ours. */
export const CALLBACK_ANSWER_BYTES_MAX = 64 * KiB

/**
 * How often a callback is sent again; the pause before the first time, which doubles, and at most: 2.56 hours together;
 * and how much of each is added by chance at most. Source: wire contract, reactors.
 */
export const CALLBACK_RETRIES = 10
export const CALLBACK_PAUSE_MS = 15 * 1000
export const CALLBACK_PAUSE_MS_MAX = 45 * 60 * 1000
export const CALLBACK_JITTER = 0.1

/** The longest pause that a receiver may ask for. Ours. */
export const CALLBACK_RETRY_AFTER_MS_MAX = 60 * 60 * 1000

/** How long a dead letter is kept. Ours. */
export const DEAD_LETTER_RETENTION_MS = 7 * 24 * 60 * 60 * 1000

/** How long the old secret of callbacks is good beside a new one. Ours. */
export const CALLBACK_SECRET_OVERLAP_MS = 24 * 60 * 60 * 1000

/**
 * What crosses at a time when a vault moves to another store, and is written in one transaction there: rows, and bytes, of
 * which a single row may have more. Ours.
 */
export const MOVE_ROWS_AT_ONCE = 1_000
export const MOVE_BYTES_AT_ONCE = 4 * MiB
