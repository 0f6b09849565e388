package behaviour

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
)

// Operation is a long-running operation as a [Protocol] shows it.
type Operation struct {
	ID       string // a GUID
	Verb     Verb   // or the name of an action
	Resource azure.ID
	Location string // region of the resource
	Start    time.Time
	End      time.Time // zero while it runs
	Error    *Error    // why it failed
	Canceled bool
	// Output is the resource as a client sees it, or what an action returned: a JSON
	// value, nil for none.
	Output any
}

// State is the operation's status word.
func (o Operation) State() string {
	switch {
	case o.End.IsZero():
		return "InProgress"
	case o.Canceled:
		return "Canceled"
	case o.Error != nil:
		return "Failed"
	}
	return "Succeeded"
}

// Protocol is how operations of a provider are polled. Status and Result give the
// path of the Azure-AsyncOperation and the Location URL, with its query but for
// api-version; Poll answers a GET of one of them. An operation with neither ends
// in the resource's provisioningState.
type Protocol struct {
	Name           string
	Status, Result func(o Operation) string
	Poll           func(o Operation, result bool) Reply
	// Version is the api-version in the URLs, when it is not the request's.
	Version string
	// NoOutput says that polls never carry the resource.
	NoOutput bool
}

func (o Operation) provider(path string) string {
	return fmt.Sprintf("/subscriptions/%s/providers/%s/locations/%s/%s/%s", o.Resource.Subscription(), o.Resource.Namespace(), o.Location,
		path, o.ID)
}

// failure adds the error of an operation that did not succeed to a poll's body.
func (o Operation) failure(body Object) Object {
	if o.Error != nil {
		body["error"] = o.Error.Body()
	}
	return body
}

// Body is the inner object of an error on the wire.
func (e *Error) Body() Object {
	body := Object{"code": e.Code, "message": e.Message}
	if e.Target != "" {
		body["target"] = e.Target
	}
	if e.Details != nil {
		details := make([]any, len(e.Details))
		for i, d := range e.Details {
			details[i] = d.Body()
		}
		body["details"] = details
	}
	if e.Info != nil {
		info := make([]any, len(e.Info))
		for i, one := range e.Info {
			info[i] = Object{"type": one.Type, "info": one.Info}
		}
		body["additionalInfo"] = info
	}
	return body
}

// NetworkOperations are the operations of Microsoft.Network.
func NetworkOperations() Protocol { return networkOperations("operations") }

// FirewallOperations are the operations of IP groups and firewalls.
func FirewallOperations() Protocol { return networkOperations("nfvOperations") }

func networkOperations(path string) Protocol {
	return Protocol{
		Name:     "Microsoft.Network " + path,
		NoOutput: true,
		Status:   func(o Operation) string { return o.provider(path) },
		Result:   func(o Operation) string { return o.provider("operationResults") },
		Poll: func(o Operation, result bool) Reply {
			switch {
			case !result:
				return Reply{Status: 200, Body: o.failure(Object{"status": o.State()})}
			case o.End.IsZero():
				return Reply{Status: 202}
			case o.Error != nil:
				return Reply{Status: statusOf(o.Error), Body: Object{"error": o.Error.Body()}}
			case o.Output != nil && !isWrite(o.Verb):
				return Reply{Status: 200, Body: o.Output} // of an action
			}
			return Reply{Status: 204}
		},
	}
}

func statusOf(e *Error) int {
	if e.Status >= 400 {
		return e.Status
	}
	return 400
}

// ComputeOperations are the operations of Microsoft.Compute; output says that the status
// carries the resource.
func ComputeOperations(path string, output bool) Protocol {
	status := func(o Operation) string { return o.provider(path) + "?p=" + partition(o) }
	return Protocol{
		Name:     "Microsoft.Compute " + path,
		NoOutput: !output,
		Status:   status,
		Result:   func(o Operation) string { return status(o) + "&monitor=true" },
		Poll: func(o Operation, result bool) Reply {
			switch {
			case !result:
				return Reply{Status: 200, Body: computeStatus(o, output)}
			case o.End.IsZero():
				return Reply{Status: 202}
			case o.Error != nil:
				return Reply{Status: statusOf(o.Error), Body: Object{"error": o.Error.Body()}}
			case o.Output != nil && o.Verb != Delete:
				return Reply{Status: 200, Body: o.Output}
			}
			return Reply{Status: 200}
		},
	}
}

// partition is the GUID in the p parameter, any that belongs to the operation.
func partition(o Operation) string {
	const guid = 36
	if len(o.ID) != guid {
		return o.ID
	}
	return o.ID[24:32] + o.ID[8:24] + o.ID[:8] + o.ID[32:]
}

func computeStatus(o Operation, output bool) Object {
	body := Object{"startTime": Stamp(o.Start), "status": o.State(), "name": o.ID}
	if o.End.IsZero() {
		return body
	}
	body["endTime"] = Stamp(o.End)
	if (output || !isWrite(o.Verb)) && o.Output != nil && o.Error == nil {
		body["properties"] = Object{"output": o.Output}
	}
	return o.failure(body)
}

func isWrite(v Verb) bool { return v == Create || v == Update || v == Patch || v == Delete }

// Stamp is a time as providers write it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.0000000Z07:00") }

// StorageOperations are the operations of Microsoft.Storage.
func StorageOperations() Protocol {
	return Protocol{
		Name:   "Microsoft.Storage asyncoperations",
		Result: func(o Operation) string { return o.provider("asyncoperations") + "?monitor=true" },
		Poll:   outputWhenDone(200),
	}
}

// ProviderOperations are the operations of providers that keep to the contract of ARM.
func ProviderOperations() Protocol {
	return providerOperations("operationStatuses", "operationResults")
}

// StackOperations are the operations of deployment stacks. Their states begin with small letters.
func StackOperations() Protocol {
	p := providerOperations("deploymentStackOperationStatus", "deploymentStackOperationResults")
	of := p.Poll
	p.Poll = func(o Operation, result bool) Reply {
		reply := of(o, result)
		if body, isStatus := reply.Body.(Object); !result && isStatus {
			body["status"] = strings.ToLower(o.State())
			if o.End.IsZero() {
				body["status"] = "initializing"
			}
		}
		return reply
	}
	return p
}

func providerOperations(status, results string) Protocol {
	return Protocol{
		Name:   status,
		Status: func(o Operation) string { return o.provider(status) },
		Result: func(o Operation) string { return o.provider(results) },
		Poll: func(o Operation, result bool) Reply {
			if result {
				return outputWhenDone(http.StatusOK)(o, true)
			}
			body := Object{"id": o.provider(status), "name": o.ID, "status": o.State(), "startTime": Stamp(o.Start)}
			if !o.End.IsZero() {
				body["endTime"] = Stamp(o.End)
			}
			return Reply{Status: http.StatusOK, Body: o.failure(body)}
		},
	}
}

func outputWhenDone(empty int) func(o Operation, result bool) Reply {
	return func(o Operation, _ bool) Reply {
		switch {
		case o.End.IsZero():
			return Reply{Status: 202}
		case o.Error != nil:
			return Reply{Status: statusOf(o.Error), Body: Object{"error": o.Error.Body()}}
		case o.Output != nil && o.Verb != Delete:
			return Reply{Status: 200, Body: o.Output}
		}
		return Reply{Status: empty}
	}
}

// PrivateDNSOperations are the operations of private zones and links. Their ids name what
// they do: "FrontEndAsyncOperation;UpsertPrivateDnsZone;{guid}_{subscription}".
func PrivateDNSOperations() Protocol {
	path := func(o Operation, what string) string {
		kind := "PrivateDnsZone"
		if strings.HasSuffix(strings.ToLower(o.Resource.Type()), "/virtualnetworklinks") {
			kind = "VirtualNetworkLink"
		}
		verb := "Upsert"
		if o.Verb == Delete {
			verb = "Delete"
		}
		id := "FrontEndAsyncOperation;" + verb + kind + ";" + o.ID + "_" + o.Resource.Subscription()
		return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Network/%s/%s",
			o.Resource.Subscription(), strings.ToLower(o.Resource.Group()), what, base64.RawStdEncoding.EncodeToString([]byte(id)))
	}
	return Protocol{
		Name:   "Microsoft.Network privateDnsOperationStatuses",
		Status: func(o Operation) string { return path(o, "privateDnsOperationStatuses") },
		Result: func(o Operation) string { return path(o, "privateDnsOperationResults") },
		Poll: func(o Operation, result bool) Reply {
			if result {
				return outputWhenDone(200)(o, true)
			}
			return Reply{Status: 200, Body: o.failure(Object{"status": o.State()})}
		},
	}
}

// Job is the form of ARM's own deletions: a name that says what is deleted, and a
// last status.
func Job(job string, last int) Protocol {
	return Protocol{
		Name: "ARM operationresults",
		Result: func(o Operation) string {
			return fmt.Sprintf("/subscriptions/%s/operationresults/%s", o.Resource.Subscription(), jobID(job, o))
		},
		Poll: outputWhenDone(last),
	}
}

func jobID(job string, o Operation) string {
	escape := func(s string) string { return strings.ReplaceAll(s, "-", ":2D") }
	name := job + "-" + escape(strings.ToUpper(o.Resource.Group()))
	if !o.Resource.Is("Microsoft.Resources/resourceGroups") {
		name += "-" + escape(strings.ToUpper(o.Resource.Name()))
	}
	text, _ := json.Marshal(struct { // two strings: it cannot fail
		JobID    string `json:"jobId"`
		Location string `json:"jobLocation"`
	}{name + "-" + strings.ToUpper(o.Location), o.Location})
	return base64.RawURLEncoding.EncodeToString(text)
}

// DeploymentOperations are the operations of template deployments.
func DeploymentOperations() Protocol {
	deletion := Job("DeploymentDeletionJob", 204)
	return Protocol{
		Name: "ARM operationStatuses",
		Status: func(o Operation) string {
			return string(o.Resource) + "/operationStatuses/" + Digits(o.ID)
		},
		Result: deletion.Result,
		Poll: func(o Operation, result bool) Reply {
			if result {
				return deletion.Poll(o, true)
			}
			state := o.State()
			if state == "InProgress" {
				state = "Running"
			}
			return Reply{Status: 200, Body: o.failure(Object{"status": state})}
		},
	}
}

// Digits makes the 20 digits of a deployment operation's id out of a GUID.
func Digits(guid string) string {
	var n uint64
	for _, r := range guid {
		n = n*31 + uint64(r)
	}
	return fmt.Sprintf("%020d", n)[:20]
}

var versionForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-[A-Za-z0-9.]+)?$`)

// IsVersion reports whether a text has the form of an api-version: a date, and a suffix such as -preview.
func IsVersion(text string) bool { return versionForm.MatchString(text) }

// recent is how many of the newest api-versions of a type may have others between them that are not known: Azure's catalogue lacks
// 2024-11-01 of Microsoft.Compute, which an official SDK uses.
const recent = 3

// Lacks reports whether it is known that a version is none of all the api-versions of a type.
func Lacks(versions []string, version string) bool {
	return len(versions) > recent && version < versions[recent] && !slices.Contains(versions, version)
}
