package store

// history is what a transaction has done so far: how to take it back, and the changes
// for the watchers.
type history struct {
	undone  []func()
	changes []Change
}

// Mark is a point in a transaction to go back to. The zero value is its start.
type Mark struct{ undone, changes int }

// Mark returns the point that the transaction has reached.
func (h *history) Mark() Mark { return Mark{len(h.undone), len(h.changes)} }

// OnUndo notes how to take back what was done last.
func (h *history) OnUndo(f func()) { h.undone = append(h.undone, f) }

// UndoTo takes back what was done since the mark.
func (h *history) UndoTo(m Mark) {
	for i := len(h.undone) - 1; i >= m.undone; i-- {
		h.undone[i]()
	}
	h.undone, h.changes = h.undone[:m.undone], h.changes[:m.changes]
}
