package cadre

import (
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/tool"
)

// member is a session that runs under the main session: a sub-agent or an
// in-process teammate.
type member struct {
	caller  tool.Caller
	agent   event.Agent
	session *session.Session
	stop    <-chan struct{} // closed when it is to end at once; nil: never
}

// members are the live ones, by agent id.
type members struct {
	mu     sync.Mutex
	live   map[string]*member
	closed bool
	ending sync.WaitGroup // goroutines that watch for a member's end
}

// addMember registers a member that has been opened, and publishes its start.
// When its session ends its jobs are stopped, its end is published, ended is
// called, and then gone is closed. After the runtime is closed there is no
// adding.
func (r *Runtime) addMember(m *member, started event.AgentStarted, ended func()) (gone <-chan struct{}, err error) {
	r.members.mu.Lock()
	defer r.members.mu.Unlock()
	if r.members.closed {
		return nil, session.ErrClosed
	}
	over := make(chan struct{})
	r.members.live[m.caller.AgentID] = m
	r.tree.Stream.Publish(m.agent, started)
	r.members.ending.Go(func() {
		defer close(over)
		select {
		case <-m.session.Done():
		case <-m.stop:
			_ = m.session.Close(session.ErrLeave) // what could not be given back was told
		}
		r.stopJobs(m.caller.Key())
		r.jobs.Disown(m.caller.Key())
		r.members.mu.Lock()
		delete(r.members.live, m.caller.AgentID)
		r.members.mu.Unlock()
		r.tree.Stream.Publish(m.agent, event.AgentEnded{})
		ended()
		r.tree.SignalCalm()
	})
	return over, nil
}

// stopJobs stops the jobs of an owner and waits for them.
func (r *Runtime) stopJobs(owner string) {
	for _, info := range r.jobs.Active(owner) {
		if j, ok := r.jobs.Job(info.ID); ok {
			j.Stop(session.ErrClosed)
			<-j.Done()
		}
	}
}

// all lists the live members.
func (m *members) all() []*member {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*member, 0, len(m.live))
	for _, one := range m.live {
		all = append(all, one)
	}
	return all
}

// areClosed reports whether the runtime is ending.
func (m *members) areClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// find returns the member with this agent id.
func (m *members) find(agentID string) (*member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, ok := m.live[agentID]
	return one, ok
}

// close lets no more members in, ends all there are, and waits for their end.
func (m *members) close(cause error) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	var closing sync.WaitGroup
	for _, one := range m.all() {
		closing.Go(func() { _ = one.session.Close(cause) })
	}
	closing.Wait()
	m.ending.Wait()
}
