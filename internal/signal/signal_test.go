package signal

import "testing"

func TestASignalIsKeptOnce(t *testing.T) {
	s := New()
	s.Raise()
	s.Raise()
	<-s
	select {
	case <-s:
		t.Error("two signals were kept")
	default:
	}
	s.Raise()
	<-s
}
