package behaviour

// NotDownloaded says that a behaviour needs the content at a URI. A behaviour must not wait, so the core
// gets the content while no transaction is open.
type NotDownloaded struct{ URI string }

func (e *NotDownloaded) Error() string { return "the content of " + e.URI + " is not there yet" }
