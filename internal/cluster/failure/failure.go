// Package failure says why a deployment failed: the resources, the innermost errors, and what to do about them. Layer L3.
package failure

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kaz/internal/azure"
)

// Resource is a resource that could not be deployed.
type Resource struct {
	// Path are the units and the resource: "cp-1 > prod-cp-1".
	Path    string   `json:"path"`
	ID      azure.ID `json:"resourceId"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Remedy  string   `json:"remedy,omitempty"`
}

// Kind is what the failure means.
func (r Resource) Kind() azure.Kind { return kind(r.Code, r.Message) }

func kind(code, message string) azure.Kind {
	return azure.ClassifyText(0, []string{code}, []string{message})
}

// Error is a failed deployment.
type Error struct {
	Deployment azure.ID
	Failures   []Resource
	Cause      error
}

func (d *Error) Unwrap() error { return d.Cause }

func (d *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deployment %s failed", d.Deployment.Name())
	for _, f := range d.Failures {
		fmt.Fprintf(&b, "\n%s: %s: %s", f.Path, f.Code, f.Message)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "\n  remedy: %s", f.Remedy)
		}
	}
	if len(d.Failures) == 0 {
		fmt.Fprintf(&b, ": %v", d.Cause)
		if fault, ok := errors.AsType[*azure.Error](d.Cause); ok && Remedy(fault.Code, fault.Message) != "" {
			fmt.Fprintf(&b, "\n  remedy: %s", Remedy(fault.Code, fault.Message))
		}
	}
	b.WriteString("\nthe same command goes on where this deployment stopped")
	return b.String()
}

// Innermost is the code and the message of the innermost error of a status.
func Innermost(status json.RawMessage) (code, message string) {
	type fault struct {
		Code    string            `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(status, &outer) != nil || len(outer.Error) == 0 {
		return "Unknown", string(status)
	}
	for next := outer.Error; next != nil; {
		var f fault
		if json.Unmarshal(next, &f) != nil {
			break
		}
		if f.Code != "" {
			code, message = f.Code, f.Message
		}
		next = nil
		if len(f.Details) > 0 {
			next = f.Details[0]
		}
	}
	return code, message
}

// Remedy says what to do about an error of Azure.
func Remedy(code, message string) string {
	switch code {
	case "SkuNotAvailable":
		return "choose another vmSize or other zones: kaz cluster deploy --dry-run checks them"
	case "SubnetIsFull", "PrivateIPAddressesExceeded":
		return "the subnet has no free address: choose a larger one, or fewer machines"
	case "AuthorizationFailed", "LinkedAuthorizationFailed":
		return "ask an owner of the subscription for the role that the message names"
	case "RequestDisallowedByPolicy":
		return "a policy of the subscription forbids the resource: a TemplatePatch can change it, such as its tags"
	case "VMExtensionProvisioningError", "OSProvisioningTimedOut":
		return "the machine did not join the cluster: its boot log is /var/log/kaz-bootstrap.log and in its boot diagnostics"
	case "ScopeLocked":
		return "remove the lock of the resource group"
	}
	switch kind(code, message) {
	case azure.Capacity:
		return "Azure has no room now: try again later, or another vmSize or other zones"
	case azure.Quota:
		return "ask for a higher quota in the Azure portal (Subscription, Usage + quotas), or choose fewer or smaller machines"
	}
	return ""
}
