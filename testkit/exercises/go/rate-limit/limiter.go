package limiter

// Limiter allows a number of events.
type Limiter struct {
	limit int
	count int
}

// New returns a limiter.
func New(limit int) *Limiter {
	return &Limiter{limit: limit}
}

// Allow reports whether an event is allowed, and counts it.
func (l *Limiter) Allow() bool {
	l.count++
	return l.count <= l.limit
}
