package blob

import (
	"net/http"
	"slices"
	"strings"

	"kaz/internal/localazure/plane/account"
)

// operation is what a request can do.
type operation struct {
	// action is the last part of the right that the operation needs, after that of the service. It is a data action if data is set. It is
	// "" for an operation of which each part needs a right of its own.
	action string
	data   bool
	// signed are letters of a signature. The operation needs one of them.
	signed string
	// creates says that the container need not exist.
	creates bool
	do      func(c *call) error
}

// What a request is about. Each has the operations of its own.
type (
	serviceCall   struct{ *call } // an account, or many blobs
	containerCall struct{ *call }
	blobCall      struct{ *call } // a blob as a whole
	blockCall     struct{ *call } // a part of a blob
	copyCall      struct{ *call } // a blob that is made of another one
)

// on returns an operation on a subject as a function of the request.
func on[C ~struct{ *call }](do func(C) error) func(*call) error {
	return func(c *call) error { return do(C{c}) }
}

// The rights for blobs.
const (
	blobsRead  = "containers/blobs/read"
	blobsWrite = "containers/blobs/write"
)

// onBlob is an operation on a blob.
func onBlob(action, signed string, do func(c *call) error) operation {
	return operation{action: action, data: true, signed: signed, do: do}
}

// operations are the operations by method, by what the path names, and by the parameter comp.
var operations = map[string]operation{
	"GET service list":               {action: "containers/read", signed: "l", do: on(serviceCall.listContainers)},
	"GET service properties":         {action: "read", signed: "r", do: on(serviceCall.serviceProperties)},
	"PUT service properties":         {action: "write", signed: "w", do: on(serviceCall.setServiceProperties)},
	"GET service stats":              {action: "read", signed: "r", do: on(serviceCall.statistics)},
	"POST service userdelegationkey": {action: "generateUserDelegationKey/action", do: on(serviceCall.delegate)},
	"GET service blobs":              onBlob("containers/blobs/filter/action", "f", on(serviceCall.search)),
	"GET container blobs":            onBlob("containers/blobs/filter/action", "f", on(serviceCall.search)),
	"POST service batch":             onBlob("", "", on(serviceCall.batch)),
	"POST container batch":           onBlob("", "", on(serviceCall.batch)),
	"GET any properties":             {action: "read", signed: "rlcwd", do: on(serviceCall.describeAccount)},

	"GET container list":     onBlob(blobsRead, "l", on(containerCall.list)),
	"GET container":          {action: "containers/read", signed: "r", do: on(containerCall.properties)},
	"HEAD container":         {action: "containers/read", signed: "r", do: on(containerCall.properties)},
	"GET container metadata": {action: "containers/read", signed: "r", do: on(containerCall.properties)},
	"PUT container metadata": {action: "containers/write", signed: "w", do: on(containerCall.setContainerMetadata)},
	"PUT container":          {action: "containers/write", signed: "cw", creates: true, do: on(containerCall.createContainer)},
	"DELETE container":       {action: "containers/delete", signed: "d", do: on(containerCall.deleteContainer)},
	"GET container acl":      {action: "containers/getAcl/action", do: on(containerCall.access)},
	"PUT container acl":      {action: "containers/setAcl/action", do: on(containerCall.setAccess)},
	"PUT container lease":    {action: "containers/write", signed: "w", do: on(containerCall.leaseContainer)},

	"GET blob":           onBlob(blobsRead, "r", on(blobCall.get)),
	"HEAD blob":          onBlob(blobsRead, "r", on(blobCall.get)),
	"GET blob metadata":  onBlob(blobsRead, "r", on(blobCall.metadata)),
	"HEAD blob metadata": onBlob(blobsRead, "r", on(blobCall.metadata)),
	"GET blob blocklist": onBlob(blobsRead, "r", on(blockCall.blocks)),
	"GET blob tags":      onBlob("containers/blobs/tags/read", "t", on(blobCall.tags)),

	"PUT blob":             onBlob(blobsWrite, "cw", on(blobCall.put)),
	"PUT blob block":       onBlob(blobsWrite, "cw", on(blockCall.stage)),
	"PUT blob blocklist":   onBlob(blobsWrite, "cw", on(blockCall.commit)),
	"PUT blob appendblock": onBlob(blobsWrite, "aw", on(blockCall.append)),
	"PUT blob metadata":    onBlob(blobsWrite, "w", on(blobCall.setMetadata)),
	"PUT blob properties":  onBlob(blobsWrite, "w", on(blobCall.setProperties)),
	"PUT blob tier":        onBlob(blobsWrite, "w", on(blobCall.setTier)),
	"PUT blob copy":        onBlob(blobsWrite, "w", on(copyCall.abort)),
	"PUT blob seal":        onBlob(blobsWrite, "w", on(blobCall.seal)),
	"PUT blob snapshot":    onBlob(blobsWrite, "cw", on(blobCall.takeSnapshot)),
	"PUT blob lease":       onBlob(blobsWrite, "w", on(blobCall.leaseBlob)),
	"PUT blob tags":        onBlob("containers/blobs/tags/write", "t", on(blobCall.setTags)),
	"DELETE blob":          onBlob("containers/blobs/delete", "d", on(blobCall.delete)),
}

// operation returns what a request to a container, "" for none, does.
func (c *call) operation(container string) (operation, error) {
	target := "blob"
	switch kind := c.query.Get("restype"); {
	case kind == "account":
		target = "any"
	case container == "":
		target = "service"
	case c.blob == "" && kind == "container":
		target = "container"
	}
	if target == "service" && c.query.Get("restype") == "container" {
		return operation{}, account.InvalidParameter("restype", "container", "the name of a container in the path")
	}
	comp := c.query.Get("comp")
	o, known := operations[strings.TrimSpace(c.r.Method+" "+target+" "+comp)]
	if !known || target == "blob" && c.blob == "" || c.query.Get("versionid") != "" {
		return o, refuse(http.StatusNotImplemented, "NotImplemented",
			"The local Azure serves containers, block blobs, append blobs, their properties, tags, tiers, snapshots and leases, copies, "+
				"lists, searches and batches. It does not serve %s %s with comp %q, page blobs and versions.", c.r.Method, target, comp)
	}
	if c.snapshot != "" && !ofSnapshots[comp] && c.r.Method == http.MethodPut {
		return o, account.InvalidParameter("snapshot", c.snapshot, "none: a snapshot cannot be changed")
	}
	return o, checkAbsent(c.r.Header)
}

// checkAbsent refuses headers that would change what a request does, and do nothing here.
func checkAbsent(given http.Header) error {
	for name := range given {
		lower := strings.ToLower(name)
		if slices.ContainsFunc(absentHeaders, func(before string) bool { return strings.HasPrefix(lower, before) }) {
			return refuse(http.StatusNotImplemented, "NotImplemented", "The local Azure does not serve requests with %s.", lower)
		}
	}
	return nil
}

// absentHeaders begin the names of headers that the local Azure refuses.
var absentHeaders = []string{"x-ms-encryption-", "x-ms-source-encryption-", "x-ms-structured-", "x-ms-blob-if-", "x-ms-access-tier-if-",
	"x-ms-expiry-", "x-ms-immutability-policy-", "x-ms-legal-hold"}

// ofSnapshots are the operations that change snapshots, by comp.
var ofSnapshots = map[string]bool{"tier": true, "tags": true}
