package table

import (
	"encoding/xml"
	"net/http"
	"time"

	"kaz/internal/localazure/plane/account"
)

type stats struct {
	XMLName xml.Name `xml:"StorageServiceStats"`
	Status  string   `xml:"GeoReplication>Status"`
	Synced  string   `xml:"GeoReplication>LastSyncTime"`
}

// stats answers with the state of the secondary location, which alone has them.
func (c *call) stats() error {
	if !c.secondary {
		return account.InvalidParameter("comp", "stats", "a request to the secondary location for it")
	}
	account.Reply(c.out, http.StatusOK, stats{Status: "live", Synced: c.now.UTC().Format(time.RFC1123)})
	return nil
}

func (c *call) serviceProperties() error { return noResource() }

func (c *call) setServiceProperties() error { return noResource() }
