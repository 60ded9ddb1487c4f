/** All limits of the system, on one page. The unit is in the name, the source in the comment. */

export const KiB = 1024
export const MiB = 1024 * KiB

/** Any JSON body. Source: interface.md, Limits (invoke); that other endpoints share it is ours. */
export const BODY_BYTES_MAX = 5 * MiB

/**
 * The body of a request with a public key, unless the tenant's settings say otherwise, and the least that they may say. Ours:
 * decision 0086.
 */
export const PUBLIC_BODY_BYTES_MAX = 256 * KiB
export const PUBLIC_BODY_BYTES_MAX_MIN = 1 * KiB

/**
 * Memory quota of one tenant's requests for bodies, as much again for answers that are not taken yet, and for results made from
 * tokens for destinations. Small ones are not counted. Ours: decisions 0057 and 0059.
 */
export const QUOTA_BYTES_MAX = 32 * MiB
export const LARGE_BYTES_MIN = 64 * KiB

/** Requests of one tenant that wait for memory for their bodies; more are refused. Ours: decision 0057. */
export const LARGE_BODIES_WAITING_MAX = 256

/** How long a request waits for other requests of its tenant to release their quota. Ours: decision 0057. */
export const QUOTA_WAIT_MS_MAX = 10_000

/** How long a client may take nothing of a long answer, approximately. Ours: decision 0057. */
export const ANSWER_PAUSE_MS_MAX = 30_000

/**
 * Requests of one tenant that read tokens at a time; and how many of them may be large reads, plus as many more that turn out to
 * be. Ours: decisions 0057 and 0059.
 */
export const READS_AT_ONCE = 32
export const LARGE_READS_AT_ONCE = 4

/**
 * Public keys, and client addresses with such a key, whose requests are counted: those that were quiet for longest are forgotten. Ours:
 * decision 0108.
 */
export const LIMITED_KEYS_MAX = 10_000
export const LIMITED_ADDRESSES_MAX = 100_000

/** `Forwarded` and `X-Forwarded-For`, in which the client's address is looked for; a longer one names none. Ours. */
export const FORWARDED_CHARS_MAX = 2_000

/** How often the log says of one public key that its requests are over a limit. Ours. */
export const LIMITS_LOGGED_MS = 60_000

/** Nesting of arrays and objects in any JSON body. Ours: decision 0010. */
export const JSON_DEPTH_MAX = 512

/** Members, objects and arrays in any JSON body. Ours: a member with a unique name takes a microsecond. */
export const JSON_PARTS_MAX = 200_000

/**
 * Members and array items in any JSON body; an empty container counts as one. Ours: a body may hold this many strings of eight
 * characters, and each takes a tenth of a microsecond to parse and as much to traverse.
 */
export const JSON_ITEMS_MAX = 500_000

/** The path of a member in an error; a longer one is cut. Ours. */
export const ERROR_PATH_CHARS_MAX = 500

/** Header fields of one request; more is 431. Ours. */
export const HEADERS_MAX = 100

/** All request headers together. Ours; Node's own default. */
export const HEADER_BYTES_MAX = 16 * KiB

/** Time a client has to send all headers. Ours. */
export const HEADERS_TIMEOUT_MS = 10_000

/** Time a client has to send a whole request. Ours. */
export const REQUEST_TIMEOUT_MS = 30_000

/**
 * The slowest that a body may come in which is forwarded as it comes, over all the time it was waited for: the first
 * REQUEST_TIMEOUT_MS do not count. Ours.
 */
export const BODY_BYTES_PER_S_MIN = 1_000

/** How often forwarded requests are checked: whether their body comes fast enough, and whether their key still works. Ours. */
export const STREAM_CHECK_MS = 1_000

/** How often both timeouts are checked: a client may be that much later. Ours; Node's default is half a minute. */
export const TIMEOUTS_CHECK_MS = 1_000

/** How long a connection stays open after its last answer, so that the client can read it. Ours. */
export const LINGER_MS = 5_000

/** Chunks that are discarded meanwhile: each takes time. Ours. */
export const LINGER_CHUNKS_MAX = 10_000

/** Chunks read before other work runs, some milliseconds: of all incoming bodies, and of all responses of destinations. Ours. */
export const READ_CHUNKS_PER_TICK = 1_000

/** Requests that resume in one tick of the event loop, some milliseconds. Ours: larger batches are no faster. */
export const TICK_BATCH_MAX = 128

/** Requests of one connection whose responses have not left; those after them are not read. Ours: decision 0089. */
export const PIPELINED_REQUESTS_MAX = 16

/** Time an idle connection is kept for the next request. Ours. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000

/** Time that requests in flight have to finish when the server stops. */
export const SHUTDOWN_MS_MAX = 9_000

/** A caller's own trace id. Source: interface.md, cross-cutting. */
export const TRACE_ID_CHARS_MAX = 200

/** Decisions logged per request. Ours. */
export const DECISIONS_LOGGED_MAX = 100

/** Damaged values that the log names per list. Ours. */
export const UNREADABLE_LOGGED_MAX = 20

/** An idempotency key. Ours. */
export const IDEMPOTENCY_KEY_CHARS_MAX = 400

/** How long a successful answer is replayed. Source: interface.md, idempotency. */
export const IDEMPOTENCY_LIFETIME_MS = 24 * 60 * 60 * 1000

/** How long a commit waits for the disk before the caller learns that its outcome is unknown. Ours. */
export const COMMIT_WAIT_MS_MAX = 5_000

/** Entities in one audit event; an operation on more of them makes several events. Ours. */
export const AUDIT_EVENT_ENTITIES_MAX = 1_000

/** Interval between checkpoints of audit events that are not covered yet. Ours: decision 0020. */
export const AUDIT_CHECKPOINT_MS = 1_000

/** How far events may follow the checkpoint, by their own times, before that is suspicious. Ours. */
export const AUDIT_CHECKPOINT_LAG_MS_MAX = 60_000

/** Tenants whose end of the audit log a server remembers, to compare it with the database's. Ours: 1 MB of memory. */
export const AUDIT_TIPS_MAX = 10_000

/** How many of them are compared per AUDIT_CHECKPOINT_MS, besides those whose tenant is written for. Ours: some 5 ms of the database. */
export const AUDIT_TIPS_AT_ONCE = 250

/** How long a server that stops waits for the file of audit checkpoints, which may be on a network. Ours. */
export const CHECKPOINT_FILE_MS_MAX = 2_000

/** Checkpoints of a file that are compared with the database at a time. Ours: some 10 MB of memory. */
export const CHECKPOINT_LINES_AT_ONCE = 20_000

/** Characters of a line of a log that `audit verify --against` looks at; longer ones hold no checkpoint. Ours. */
export const CHECKPOINT_LINE_CHARS_MAX = 64 * 1024

/** Interval between sweeps for expired audit events. Ours. */
export const AUDIT_SWEEP_MS = 60 * 60 * 1000

/** Interval between checks of the access rows against their state. Ours. */
export const ACCESS_CHECK_MS = 60 * 60 * 1000

/** Access rows read at a time. Ours. */
export const ACCESS_ROWS_AT_ONCE = 200

/** Audit events read or removed at a time. Ours. */
export const AUDIT_EVENTS_AT_ONCE = 200

/** Page of a list. Source: interface.md, pagination. */
export const PAGE_SIZE_DEFAULT = 20
export const PAGE_SIZE_MAX = 100

/** Names of applications, reactors, tenants. Source: interface.md, Limits. */
export const NAME_CHARS_MAX = 200

/** Characters of a filter by name: any name between two stars. Ours. */
export const NAME_FILTER_CHARS_MAX = NAME_CHARS_MAX + 2

/** How long a changed application or a revoked key may still be honoured. Ours: decision 0006. */
export const IDENTITY_CACHE_MS = 1_000
export const IDENTITY_CACHE_ENTRIES_MAX = 10_000

/** Rows searched at a time for envelopes sealed under an older key. Ours: decision 0037. */
export const ENVELOPE_ROWS_AT_ONCE = 128

/** Sealed bytes in them; a single row may have more. Ours. */
export const ENVELOPE_BYTES_AT_ONCE = 4 * MiB

/**
 * How long no envelope under an older key may have been found before that key is rejected and destroyed: longer than any request
 * takes from sealing to committing. Ours: decision 0037.
 */
export const KEY_RETIREMENT_MS = 30_000

/** Tenants whose data keys are rotated at the same time. Ours: decision 0037. */
export const ROTATIONS_AT_ONCE = 8

/** How long a list of keys counts as complete, if several servers share a store. Ours: decision 0044. */
export const KEYS_BELIEVED_MS = 5_000

/**
 * How long a server that shares its store has known a data key before it seals under it: by then all others have read it, and
 * earlier requests are done. Ours: decision 0044.
 */
export const KEY_ANNOUNCED_MS = 15_000

/** How often it checks whether that time is over. */
export const KEY_ANNOUNCED_LOOK_MS = 500

/** Tenants whose keys are kept unwrapped, a few KiB each. Ours: decision 0005. */
export const TENANT_KEYS_CACHED_MAX = 1_000

/** Access rules of one application. Ours. */
export const RULES_MAX = 100

/** Destinations of one application, or of a tenant; and the length of one: a host name, perhaps with a star before it and a port. Ours. */
export const DESTINATIONS_MAX = 100
export const DESTINATION_CHARS_MAX = 300

/** Origins of one application, all of which are in one header of the card fields; and the length of one: a host name and a port. Ours. */
export const ORIGINS_MAX = 50
export const ORIGIN_CHARS_MAX = 300

/** The destination of a proxy. Source: interface.md, pre-configured proxies. */
export const DESTINATION_URL_CHARS_MAX = 400

/** The code of a reactor. Source: interface.md, reactors. */
export const REACTOR_CODE_CHARS_MAX = 50_000

/** Different tokens in one invocation. Source: interface.md, Limits. */
export const REACTOR_TOKENS_MAX = 100

/** How long code may run while a client waits for it. Source: interface.md, reactors. */
export const REACTOR_TIMEOUT_MS = 30_000

/** Timeouts that a caller may choose for code that no client waits for. Source: interface.md, Limits. */
export const REACTOR_TIMEOUT_ASKED_MS_MIN = 10_000
export const REACTOR_TIMEOUT_ASKED_MS_MAX = 210_000

/** The result of code, as JSON, and the body of a response it throws. Ours. */
export const REACTOR_RESULT_BYTES_MAX = 5 * MiB

/**
 * A result up to this length is read on the main thread; a longer one in a worker, which ends when idle. 32 KiB of the smallest
 * values take a millisecond. Ours: decision 0090.
 */
export const REACTOR_RESULT_INLINE_BYTES = 32 * KiB
export const REACTOR_RESULT_IDLE_MS = 10 * 1000

/**
 * The message of an error that code throws; a longer one is not shown. Then its `errors`: the length of a name, and how many
 * names, and messages of each, there are. Ours.
 */
export const REACTOR_MESSAGE_CHARS_MAX = 2_000
export const REACTOR_ERROR_NAME_CHARS_MAX = 200
export const REACTOR_ERRORS_MAX = 20

/** Headers of a response that code throws, and their names and values together. Ours. */
export const REACTOR_HEADERS_MAX = 50
export const REACTOR_HEADERS_CHARS_MAX = 8 * KiB

/** Values redacted in errors that code throws, all forms together; with more, nothing of the error is shown. Ours. */
export const REDACTION_CHARS_MAX = 64 * KiB

/** The configuration of a proxy or a reactor; the length of its members is ours. Source: as above. */
export const CONFIGURATION_ENTRIES_MAX = 25
export const CONFIGURATION_KEY_CHARS_MAX = 200
export const CONFIGURATION_VALUE_CHARS_MAX = 10_000

/** A proxy key in a request. Ours; generated ones have 32. */
export const PROXY_KEY_CHARS_MAX = 100

/** Keys of one application at a time. Ours. */
export const APPLICATION_KEYS_MAX = 10

/** How long a session lives unless its authorization says otherwise. Source: interface.md, sessions. */
export const SESSION_LIFETIME_MS = 3 * 60 * 1000

/** How long a session may live once it is authorized. Ours: nothing else takes its rights away. */
export const SESSION_LIFETIME_MS_MAX = 60 * 60 * 1000

/** Rules of one session, and conditions of one rule. Ours: each is compared with all of the grantor's. */
export const SESSION_RULES_MAX = 20
export const SESSION_CONDITIONS_MAX = 5

/** A nonce in a request. Ours; generated ones have 32. */
export const NONCE_CHARS_MAX = 100

/** How long late data of a deleted tenant is still removed: longer than any request. Ours. */
export const TENANT_CLEARING_MS = 60 * 60 * 1000

/** A container path, and the number of containers of one token. Ours. */
export const CONTAINER_CHARS_MAX = 255
export const CONTAINERS_MAX = 10

/** A token id chosen by the caller. Source: interface.md, ids. */
export const TOKEN_ID_CHARS_MIN = 3
export const TOKEN_ID_CHARS_MAX = 400

/** Attempts to find an unused alias before a UUID is used instead. Ours. */
export const ALIAS_ATTEMPTS_MAX = 10

/** Tokens of one tokenize request, unless configured otherwise. Ours: bulk is first-class. */
export const TOKENIZE_TOKENS_MAX = 10_000

/** Milliseconds that work, such as on one payload, may hold the event loop before it yields; the second is for short ones. Ours. */
export const YIELD_AFTER_MS = 0.25
export const SHORT_LIST_YIELD_AFTER_MS = 4

/** A fingerprint expression. Source: interface.md, tokens. */
export const FINGERPRINT_EXPRESSION_CHARS_MAX = 400

/** Any other expression. Ours. */
export const EXPRESSION_CHARS_MAX = 4_000

/** Search index expressions of one token. Ours. */
export const SEARCH_INDEXES_MAX = 20

/** Metadata of one token. Ours. */
export const METADATA_ENTRIES_MAX = 50
export const METADATA_KEY_CHARS_MAX = 200
export const METADATA_VALUE_CHARS_MAX = 2_000

/** How long a card security code is kept. Source: interface.md, card data. */
export const CVC_LIFETIME_MS = 60 * 60 * 1000

/** How often a server announces itself, and logs the notices of other processes. Ours. */
export const NOTICES_MS = 10_000

/** How often a server continues rotations that ended because the store did not answer. Ours. */
export const ROTATION_RESUME_MS = 30_000

/** How long a server counts as running after its last notice: several may be late. Ours: decision 0072. */
export const SERVER_FORGOTTEN_MS = 45_000

/** How long the notice of a server that was killed is kept. Ours. */
export const SERVER_NOTICE_KEPT_MS = 60 * 60 * 1000

/** How often expired rows are removed for good. Ours. */
export const SWEEP_EVERY_MS = 10_000

/** How long a transaction stays open, unless configured otherwise. Source: interface.md, transactions. */
export const TRANSACTION_LIFETIME_MS = 60 * 60 * 1000

/** The longest that may be configured; its events are that much older than its commit at most. Source: configuration.md. */
export const TRANSACTION_LIFETIME_MS_MAX = 24 * 60 * 60 * 1000

/** How long after its end a transaction is remembered, to say how it ended. Ours. */
export const TRANSACTION_KEPT_MS = 24 * 60 * 60 * 1000

/**
 * Open transactions of one application, unless configured otherwise; and of a public one, for callers that no private one has
 * authorized. Ours: decision 0087.
 */
export const TRANSACTIONS_OPEN_MAX = 1_000
export const PUBLIC_TRANSACTIONS_OPEN_MAX = 100

/** When to try again to open one. Ours. */
export const TRANSACTIONS_RETRY_MS = 10_000

/** Tokens that one transaction may update and delete; created ones are not counted. Ours. */
export const PENDING_MAX = 1_000

/**
 * Total size of these tokens, before and after: they are moved in the step that commits the transaction, while all other requests
 * wait. Tokens up to the second limit are not measured. Ours: decision 0060.
 */
export const PENDING_BYTES_MAX = 32 * MiB
export const PENDING_LIGHT_BYTES_MAX = 32 * KiB

/** Bytes of each kind of unreachable rows that a sweep step removes; a single row may have more. Ours: decision 0060. */
export const SWEEP_BYTES_AT_ONCE = 8 * MiB

/**
 * Audit events that wait for the commit of one transaction: one for each change of each request, a thousand tokens in one. They
 * are written in the step that commits it, while all other requests wait. Ours.
 */
export const PARKED_MAX = 10_000

/** The result of one expression: as much as the largest possible data. Ours. */
export const EXPRESSION_RESULT_CHARS_MAX = 5 * MiB

/** Characters that one template or one mask may read or write, all filters together. Ours. */
export const EXPRESSION_WORK_CHARS_MAX = 16 * MiB

/**
 * Characters of work that the expressions of one request may do together, for each token it makes, beyond the limit of a single
 * one; and characters that all its masks may show. Ours.
 */
export const TOKEN_WORK_CHARS_MAX = 16 * KiB
export const MASKS_SHOWN_CHARS_MAX = 16 * MiB

/** The same for requests with a public key, which strangers have: a short body must not produce a long answer. Ours. */
export const MASKS_SHOWN_PUBLIC_CHARS_MAX = 1 * MiB

/** Strings, numbers and other leaves, objects and arrays of one mask; and characters of its names and strings. Ours. */
export const MASK_NODES_MAX = 1_000
export const MASK_CHARS_MAX = 16 * KiB

/** The member `encryption` of a token, as JSON. Ours. */
export const ENCRYPTION_CHARS_MAX = 16 * KiB

/** Source text of the cached templates. Ours. */
export const TEMPLATE_CACHE_CHARS_MAX = 1 * MiB

/** A search query. Source: interface.md, search. */
export const SEARCH_QUERY_CHARS_MAX = 200

/** Different tokens in one detokenize request. Ours. */
export const DETOKENIZE_TOKENS_MAX = 100

/** Locations in a payload that an error names, each with its messages. Ours. */
export const ERRORS_NAMED_MAX = 100

/** Expressions in one detokenize request; and characters of their filters, each distinct chain counted once. Ours. */
export const DETOKENIZE_REFERENCES_MAX = 10_000
export const DETOKENIZE_FILTERS_CHARS_MAX = 64 * KiB

/** Encrypted data that one request reads, or one page shows. Ours: a page of the largest tokens would fill memory. */
export const SHOWN_DATA_BYTES_MAX = 32 * MiB

/** Encrypted data that a token's look-up returns with it, before its use is authorized. Ours: decision 0078. */
export const INLINE_DATA_BYTES_MAX = 4 * KiB

/** The address in BT-PROXY-URL. Ours. */
export const PROXY_URL_CHARS_MAX = 2_048

/** Different tokens in one proxied request. Source: interface.md, expressions. */
export const PROXY_TOKENS_MAX = 100

/** How long the addresses of a name, or their absence, are cached. Ours: decision 0023. */
export const EGRESS_NAME_MS = 5_000
export const EGRESS_NAMELESS_MS = 1_000

/** Names whose addresses are cached. Ours. */
export const EGRESS_NAMES_MAX = 10_000

/** Addresses of one name; a name with more is treated as having none. Ours. */
export const EGRESS_ADDRESSES_MAX = 100

/**
 * Concurrent look-ups of all owners and of one, and waiting ones of one owner; each look-up holds one of Node's four threads.
 * Ours.
 */
export const EGRESS_LOOKUPS_MAX = 3
export const EGRESS_LOOKUPS_OF_ONE_MAX = 2
export const EGRESS_LOOKUPS_WAITING_MAX = 1_000

/** How long to wait for the answer of a look-up. Ours. */
export const EGRESS_LOOKUP_MS_MAX = 5_000

/** How long one of several addresses may take to accept a connection before the next is tried. Ours. */
export const EGRESS_CONNECT_MS_MAX = 3_000

/** How long it may take to open a tunnel. Ours. */
export const EGRESS_TUNNEL_MS_MAX = 10_000

/** Tunnels of one owner (see Egress.vet) and of all that are open, or being opened. Ours. */
export const EGRESS_TUNNELS_OF_ONE_MAX = 256
export const EGRESS_TUNNELS_MAX = 1_024

/** Tunnels that one owner may open to one host: at once, and each second after that. Ours. */
export const EGRESS_DIALS_AT_ONCE = 1_000
export const EGRESS_DIALS_PER_S = 200

/**
 * Tunnels that fail, or are given up before they are open: of one owner to one host and to all, each of them at once and then per
 * minute. More would make a port scanner. Ours.
 */
export const EGRESS_FAILED_DIALS_OF_HOST = 30
export const EGRESS_FAILED_DIALS = 300

/** Hosts whose dials are counted; the one that was dialled least recently is forgotten. Ours. */
export const EGRESS_DIALLED_HOSTS_MAX = 10_000

/** Connections of one owner (see Egress.vet) to one destination, and requests that wait for one of them. Ours. */
export const EGRESS_CONNECTIONS_MAX = 64
export const EGRESS_WAITING_MAX = 256

/** Destinations whose connections are pooled, all owners together. Ours. */
export const EGRESS_POOLS_MAX = 1_000

/**
 * How long an idle connection is kept for the next request, if the destination does not say how long it will keep it, and at
 * most; the destination's value is reduced by the margin. Ours: decision 0023.
 */
export const EGRESS_IDLE_MS = 4_000
export const EGRESS_IDLE_MS_MAX = 30_000
export const EGRESS_IDLE_MARGIN_MS = 2_000

/**
 * A destination that closes a connection this soon after a response, or as it is used again, is remembered for
 * EGRESS_CLOSE_MEMORY_MS: requests that must not be sent twice then get new connections. Ours: decision 0068.
 */
export const EGRESS_EARLY_CLOSE_MS = 100
export const EGRESS_CLOSE_MEMORY_MS = 600_000

/** How many such destinations are remembered for one owner. Ours. */
export const EGRESS_CLOSES_MAX = 100

/** Header section of a destination's response: all header fields together. Ours. */
export const EGRESS_HEADER_SECTION_BYTES_MAX = 64 * KiB

/** Its header fields: each has a cost, however short it is. Ours. */
export const EGRESS_HEADERS_MAX = 1_000

/** Bytes of one response read at a time: as much as this many chunks like the last ones, within these bounds. Ours. */
export const EGRESS_PORTION_CHUNKS = 64
export const EGRESS_PORTION_BYTES_MIN = 4 * KiB
export const EGRESS_PORTION_BYTES_MAX = 64 * KiB

/** How often calls are checked for timeouts: a limit may be exceeded by that much. Ours. */
export const EGRESS_TICK_MS = 250

/** The output of all expressions of one proxied body. Ours: an escape may take six characters for one. */
export const RENDERED_BODY_BYTES_MAX = 32 * MiB

/** Parts of a multipart body that is forwarded and has expressions in it. Ours. */
export const MULTIPART_PARTS_MAX = 1_000

/** All headers of one part of a multipart body; with more it is not well-formed. Ours. */
export const PART_HEADER_SECTION_BYTES_MAX = 4 * KiB

/** A content type of a forwarded body; a longer one is not parsed. Ours. */
export const CONTENT_TYPE_CHARS_MAX = 1_000

/** An error that a reactor throws, as JSON. Ours. */
export const REACTOR_ERROR_BYTES_MAX = 64 * KiB

/** Console output of one run of a reactor, if it is collected at all; each line takes another 64 bytes. Ours. */
export const REACTOR_OUTPUT_BYTES_MAX = 64 * KiB

/** A line of it in the log; a longer one continues on another. Ours. */
export const REACTOR_LOG_LINE_CHARS_MAX = 4 * KiB

/** Retained error output of a reactor, where the runtime says why it exits. Ours. */
export const REACTOR_STDERR_BYTES_MAX = 64 * KiB

/**
 * Bytes that a process may leave unread before nothing more is read from it or sent to it: a window for each of its connections, with
 * room to spare; and how long that may last before it is ended. Ours.
 */
export const REACTOR_UNREAD_BYTES_MAX = 4 * MiB
export const REACTOR_STALL_MS_MAX = 10_000

/**
 * Messages of one process that are handled in a second, on average; it is read more slowly if it sends more. And for how many of them
 * a request for a connection counts, which costs so much more: 400 a second. Ours.
 */
export const REACTOR_FRAMES_PER_S = 20_000
export const REACTOR_FRAMES_OF_OPEN = 50

/** JavaScript objects of one reactor, in MiB. Ours. */
export const REACTOR_HEAP_MIB = 192

/** Private memory of one reactor: more is treated as an attack. Ours: decision 0030. */
export const REACTOR_MEMORY_BYTES_MAX = 320 * MiB

/** Memory it may request from the kernel, used or not; below 800 MiB Node does not start. Ours: decision 0030. */
export const REACTOR_DATA_BYTES_MAX = 1024 * MiB

/** How often memory is checked. Ours. */
export const REACTOR_WATCH_MS = 20

/** Prewarmed processes that wait for their first reactor, and how long after the service's start they are launched. Ours. */
export const REACTOR_PREWARMED = 2
export const REACTOR_PREWARM_AFTER_MS = 5_000

/** Concurrent runs, of one tenant and of all, and those of one tenant that wait in the queue. Ours. */
export const REACTOR_RUNS_MAX = 64
export const REACTOR_TENANT_RUNS_MAX = 16
export const REACTOR_TENANT_WAITING_MAX = 64

/** How long a run waits in the queue, or for a process. Ours. */
export const REACTOR_WAIT_MS_MAX = 5_000

/** Time after a result for its process to report that the run left nothing behind, and the length of the report. Ours. */
export const REACTOR_OVER_MS_MAX = 1_000
export const REACTOR_LEFTOVER_CHARS_MAX = 200

/** Memory of all processes that wait, frozen, for their reactor's next run; and how long one waits. Ours. */
export const REACTOR_WARM_BYTES_MAX = 512 * MiB
export const REACTOR_WARM_MS_MAX = 15 * 60 * 1000

/** Asynchronous invocations of one tenant that are still to be run or delivered. Ours. */
export const JOBS_MAX = 10_000

/**
 * What the asynchronous invocations of one tenant take up in the store, with their arguments and results, unless configured
 * otherwise; and what each counts for besides them, because of its row and index entries. Ours: decision 0093.
 */
export const JOB_STORAGE_BYTES_MAX = 512 * MiB
export const JOB_ROW_BYTES = 1_024

/** How long a measurement of that is good; and one that found no room. Ours. */
export const JOB_SIZES_MS = 5_000
export const JOB_SIZES_FULL_MS = 1_000

/** Concurrent asynchronous runs, of all tenants and of one: the synchronous ones have the rest. Ours. */
export const JOB_RUNS_AT_ONCE = 16
export const JOB_RUNS_OF_ONE_AT_ONCE = 4

/** How many times a run is started whose caller allows to repeat it after an interruption. Ours. */
export const JOB_RUNS_MAX = 3

/** How much longer than its code a run may take before another server takes it for lost. Ours. */
export const JOB_GRACE_MS = 60 * 1000

/** When a run that found no capacity is tried again, and for how long. Ours. */
export const JOB_BUSY_MS = 5 * 1000
export const JOB_WAIT_MS_MAX = 60 * 60 * 1000

/** How often due jobs are looked up. Ours. */
export const JOB_POLL_MS = 500

/** Jobs taken at a time. Ours. */
export const JOBS_TAKEN = 32

/** Their total size, except for the last one. Ours: decision 0060. */
export const JOBS_TAKEN_BYTES_MAX = 8 * MiB

/** How long a result is kept to be fetched. Ours. */
export const JOB_RESULT_MS = 24 * 60 * 60 * 1000

/** The address of a callback. Ours. */
export const CALLBACK_URL_CHARS_MAX = 2_048

/** Concurrent callbacks: of all tenants, of one, and to one receiver of one. Ours. */
export const CALLBACKS_AT_ONCE = 256
export const CALLBACKS_OF_ONE_AT_ONCE = 64
export const CALLBACKS_TO_ONE_AT_ONCE = 8

/**
 * Bodies up to this length are canonicalized for their signature on the main thread; longer ones in a worker, which ends when
 * idle. Ours.
 */
export const CANONICAL_INLINE_CHARS = 8 * 1024
export const CANONICAL_IDLE_MS = 10 * 1000

/** How long a receiver may take for the header section of its answer, and when a callback in progress is taken for lost. Ours. */
export const CALLBACK_TIMEOUT_MS = 15 * 1000
export const CALLBACK_CLAIM_MS = 60 * 1000

/** How much of that must be left to begin sending: the look-up, the answer and its recording all take time. Ours. */
export const CALLBACK_SENDING_MS = 30 * 1000

/** How long the rest of a receiver's answer may take once its header section has decided the outcome. Ours: decision 0088. */
export const CALLBACK_ANSWER_MS_MAX = 1_000

/** Bytes read of a receiver's answer before the connection is dropped. Ours. */
export const CALLBACK_ANSWER_BYTES_MAX = 64 * KiB

/**
 * How many times a callback is retried; the first pause, which doubles, and the longest: 2.56 hours in total; and the largest
 * random share added to each. Source: interface.md, reactors.
 */
export const CALLBACK_RETRIES = 10
export const CALLBACK_PAUSE_MS = 15 * 1000
export const CALLBACK_PAUSE_MS_MAX = 45 * 60 * 1000
export const CALLBACK_JITTER = 0.1

/** The longest pause that a receiver may ask for. Ours. */
export const CALLBACK_RETRY_AFTER_MS_MAX = 60 * 60 * 1000

/** How long a dead letter is kept. Ours. */
export const DEAD_LETTER_RETENTION_MS = 7 * 24 * 60 * 60 * 1000

/** How long the old callback secret stays valid beside a new one. Ours. */
export const CALLBACK_SECRET_OVERLAP_MS = 24 * 60 * 60 * 1000

/**
 * Rows and bytes copied at a time when a vault moves to another store, and written there in one transaction; a single row may
 * have more. Ours.
 */
export const MOVE_ROWS_AT_ONCE = 1_000
export const MOVE_BYTES_AT_ONCE = 4 * MiB

/** Interval between the progress reports of `symbolon verify` and `symbolon audit verify`, in milliseconds. Ours. */
export const VERIFY_REPORT_MS = 10 * 1000

/** How long a challenge of the service to `symbolon keys recover` is valid. Ours. */
export const RECOVERY_CHALLENGE_MS = 60 * 1000
