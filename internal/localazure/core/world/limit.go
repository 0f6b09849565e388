package world

import (
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template/lenient"
)

// The limits of what is stored. A document may be deeper than a request, because behaviours put requests into it.
const (
	mostDocument      = 16 << 20 // bytes of a document
	mostDocumentDepth = 2 * lenient.MostDepth
	mostStored        = 1 << 30 // bytes of all documents
	smallGrowth       = 4 << 10 // bytes by which a transaction may grow them beyond that, such as the states of a delete
)

// CheckSizes refuses what a transaction has stored if it is beyond the limits.
func (t *Transaction) CheckSizes() error {
	for _, id := range t.Touched {
		e := t.Entry(id)
		if e == nil {
			continue
		}
		switch {
		case len(e.Text) > mostDocument:
			return behaviour.Gateway(413, "RequestContentTooLarge", "The resource '%s' has %d bytes. At most %d MB are allowed.", e.ID,
				len(e.Text), mostDocument>>20)
		case lenient.Depth(e.Text) > mostDocumentDepth:
			return behaviour.Gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: the "+
				"resource '%s' is nested more than %d deep.", e.ID, mostDocumentDepth)
		}
	}
	if size := t.Size(); size > t.Parts.MostStored && size > t.sizeBefore+smallGrowth {
		return behaviour.Gateway(409, "QuotaExceeded", "All resources of the local Azure have %d bytes. At most %d are allowed. Delete "+
			"resources that are not needed.", size, t.Parts.MostStored)
	}
	return nil
}
