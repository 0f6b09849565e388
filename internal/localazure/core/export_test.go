package core

import "kaz/internal/localazure/core/journal"

// BreakJournal lets no change be saved, as on a full disk. The function that it returns ends this.
func (e *Emulator) BreakJournal() (mend func() error, err error) {
	size := e.persistence.journal.Size()
	return func() (err error) {
		e.persistence.journal, err = journal.Open(journalOf(e.persistence.path), size)
		return err
	}, e.persistence.journal.Close()
}
