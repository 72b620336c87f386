package limiter

// Limiter allows a number of events per user and period.
type Limiter struct {
	limit  int
	period int
	events map[string][]int
}

// New returns a limiter.
func New(limit, period int) *Limiter {
	return &Limiter{limit: limit, period: period, events: map[string][]int{}}
}

// recent forgets old events and returns the others.
func (l *Limiter) recent(user string, now int) []int {
	events := l.events[user]
	for len(events) > 0 && events[0]+l.period <= now {
		events = events[1:]
	}
	l.events[user] = events
	return events
}

// Allow reports whether an event is allowed, and counts it if so.
func (l *Limiter) Allow(user string, now int) bool {
	events := l.recent(user, now)
	if len(events) >= l.limit {
		return false
	}
	l.events[user] = append(events, now)
	return true
}

// Remaining returns how many events are allowed now.
func (l *Limiter) Remaining(user string, now int) int {
	return l.limit - len(l.recent(user, now))
}

// Wait returns the seconds until the next event is allowed.
func (l *Limiter) Wait(user string, now int) int {
	if l.limit == 0 {
		return -1
	}
	events := l.recent(user, now)
	if len(events) < l.limit {
		return 0
	}
	return events[len(events)-l.limit] + l.period - now
}
