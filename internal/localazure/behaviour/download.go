package behaviour

import "errors"

// NotDownloaded says that a behaviour needs the content at a URI. A behaviour must not wait, so the core
// gets the content while no transaction is open.
type NotDownloaded struct{ URI string }

func (e *NotDownloaded) Error() string { return "the content of " + e.URI + " is not there yet" }

// NotComputed says that a behaviour needs what takes long to compute. Other requests would wait for it under the store's lock, so
// the core lets it be computed while no transaction is open.
type NotComputed struct{ Compute func(look Look) }

func (e *NotComputed) Error() string { return "what the request needs is not computed yet" }

// Look reads the world for a moment. What f reads can have changed when Look has returned.
type Look func(f func(w World))

// Incomplete reports whether an error says that the core has to get or to compute something before the behaviour is called again.
func Incomplete(err error) bool {
	_, download := errors.AsType[*NotDownloaded](err)
	_, computation := errors.AsType[*NotComputed](err)
	return download || computation
}
