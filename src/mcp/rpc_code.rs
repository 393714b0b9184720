//! JSON-RPC error codes that this crate sends or acts on.

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
/// The peer does not know the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are not what the method takes.
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
/// The HTTP headers of a request are not those of its body (revision 2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that we did not declare; `data.requiredCapabilities` names it.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The version of the request is not spoken; `data.supported` lists those that are.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// Pages have to be visited before the request can be answered (revision 2025-11-25);
/// `data.elicitations` names them.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
