// Package control speaks stream-json, the line protocol of the Agent SDKs: one
// JSON object per line. It is the one place for the names on that wire. So far
// it only writes: system/init, assistant, user and result, with the notes
// system/api_retry and system/permission_denied between them (facts:
// sdk-contract §2, claude-code §12).
package control
