// Package wire is what the HTTP dialects of models have in common: sending a
// body that is mostly an old body, reading server-sent events, naming what went
// wrong, and the rules by which an answer that breaks off becomes a reply.
package wire
