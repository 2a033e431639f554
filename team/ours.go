package team

// parseOurs reads the messages that only our own runtimes exchange; ok is false
// for any other type.
func parseOurs(kind, text string) (c Control, ok bool) {
	switch kind {
	case typeMailReturned:
		return decode[MailReturned](text)
	case typeLoopDamped:
		return decode[LoopDamped](text)
	case typeStopRequest:
		return decode[StopRequest](text)
	}
	return nil, false
}
