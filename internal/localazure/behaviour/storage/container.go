package storage

import (
	"regexp"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage/lease"
)

// ContainerType is the type of containers of blobs.
const ContainerType = AccountType + "/blobServices/containers"

func containers() behaviour.Type {
	return behaviour.Type{
		Name:    ContainerType,
		Style:   unconditional(child(behaviour.Ticks)),
		NoState: true,
		Own: []string{
			"properties.lastModifiedTime", "properties.leaseStatus", "properties.leaseState", "properties.leaseDuration",
			"properties.hasLegalHold",
			"properties.hasImmutabilityPolicy", "properties.deleted", "properties.remainingRetentionDays", "properties.legalHold",
			"properties.immutabilityPolicy", leaseField, policiesField,
		},
		Actions: map[string]behaviour.Action{
			"setLegalHold": {Do: setLegalHold}, "clearLegalHold": {Do: clearLegalHold},
			"lease":   leaseAction(lease.Container),
			"migrate": {Long: true, Busy: "-", Headers: behaviour.Location},
		},
		Fill:    fillContainer,
		Show:    showContainer,
		Filter:  startsWith,
		Refuse:  refuseLeased,
		Missing: missing("ContainerNotFound", "container"),
	}
}

var containerName = regexp.MustCompile(`^(\$root|\$web|\$logs|[a-z0-9]([a-z0-9]|-[a-z0-9])*)$`)

// checkStorageName refuses names that the data plane does not allow.
func checkStorageName(name string, form *regexp.Regexp) error {
	const shortest, longest = 3, 63
	if len(name) < shortest || len(name) > longest {
		return behaviour.Invalid("OutOfRangeInput",
			"One of the request inputs is out of range: the name %q has %d characters, %d to %d are allowed.", name, len(name),
			shortest, longest)
	}
	if !form.MatchString(name) {
		return behaviour.Invalid("InvalidResourceName",
			"The resource name %q contains invalid characters: lower-case letters, digits and single hyphens between them are allowed.",
			name)
	}
	return nil
}

func fillContainer(c *behaviour.Call) error {
	if err := checkStorageName(c.ID.Name(), containerName); err != nil {
		return err
	}
	public := behaviour.Text(c.Doc, "properties.publicAccess")
	account, _ := c.Get(accountOf(c.ID))
	if public != "" && public != "None" && !behaviour.Bool(account, "properties.allowBlobPublicAccess") {
		return behaviour.Conflict("PublicAccessNotPermitted", "Public access is not permitted on this storage account.")
	}
	fillMade(c)
	behaviour.Default(c.Doc, "properties.publicAccess", "None")
	behaviour.Set(c.Doc, "properties.lastModifiedTime", behaviour.Timestamp(c.Now()))
	return nil
}

// madeField has the time at which a container, a queue or a table was made.
const madeField = behaviour.Private + "made"

// MadeAt is when the container, the queue or the table with a document was made, which tells it from those that had its name before.
// It is "" for one that an older kaz made.
func MadeAt(container behaviour.Object) string { return behaviour.Text(container, madeField) }

func accountOf(id azure.ID) azure.ID { return id.TopLevel() }

func showContainer(c *behaviour.Call, view behaviour.Object) {
	held := LeaseOf(view)
	behaviour.Hide(view)
	for name, value := range map[string]any{"deleted": false, "remainingRetentionDays": 0, "hasImmutabilityPolicy": false,
		"hasLegalHold": false} {
		behaviour.Default(view, "properties."+name, value)
	}
	switch c.Verb {
	case behaviour.Create, behaviour.Update, behaviour.Patch:
		behaviour.Remove(view, "properties.lastModifiedTime")
		delete(view, "etag")
		return
	case behaviour.List:
		behaviour.Default(view, "properties.immutableStorageWithVersioning", behaviour.Object{"enabled": false})
	default:
		behaviour.Default(view, "properties.legalHold", behaviour.Object{"hasLegalHold": false, "tags": []any{}})
	}
	showPolicy(c, view)
	behaviour.Default(view, "properties.defaultEncryptionScope", "$account-encryption-key")
	behaviour.Default(view, "properties.denyEncryptionScopeOverride", false)
	showLease(view, held, c.Now(), capitalised)
}

var startsWithForm = regexp.MustCompile(`(?i)^\s*startswith\(\s*name\s*,\s*'?([^')]*)'?\s*\)\s*$`)

// startsWith parses the only filter of the lists of containers and shares.
func startsWith(_ *behaviour.Call, filter string) (func(behaviour.Object) bool, error) {
	m := startsWithForm.FindStringSubmatch(filter)
	if m == nil {
		return nil, behaviour.Invalid("InvalidFilter", "The filter %q is not supported: startswith(name, PREFIX) is.", filter)
	}
	return func(o behaviour.Object) bool { return strings.HasPrefix(behaviour.Text(o, "name"), m[1]) }, nil
}
