package vault

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// defaultRetention is the number of days for which a deleted vault can be recovered.
const defaultRetention = 90

const deletedType = "Microsoft.KeyVault/locations/deletedVaults"

// vaultField is the field of a deleted vault's document with the vault's document. secretsField is the field of a
// vault's document with its deleted secrets.
const (
	vaultField   = behaviour.Private + "vault"
	secretsField = behaviour.Private + "secrets"
)

func deletedVaults() behaviour.Type {
	style := behaviour.Plain("Microsoft.KeyVault deleted vaults")
	style.Protocol = purgeOperations()
	style.Wait = map[behaviour.Verb]behaviour.Wait{"purge": {First: 5, Later: 5}}
	return behaviour.Type{
		Name:     deletedType,
		Style:    style,
		ReadOnly: true,
		NoState:  true,
		Header:   serviceHeader,
		Show:     func(_ *behaviour.Call, view behaviour.Object) { showDeleted(view) },
		Missing: func(c *behaviour.Call) error {
			return behaviour.Refusal(404, "DeletedVaultNotFound", "The specified deleted vault '%s' does not exist.", c.ID.Name())
		},
		Actions: map[string]behaviour.Action{"purge": {
			Long: true, Headers: behaviour.Location, Busy: "-",
			Do: func(c *behaviour.Call) (any, error) {
				if behaviour.Bool(c.Old, "properties.purgeProtectionEnabled") {
					return nil, behaviour.Invalid("MethodNotAllowed",
						"Operation 'DeletedVaultPurge' is not allowed: purge protection is enabled for the vault '%s'.", c.ID.Name())
				}
				return nil, nil
			},
			Settle: func(c *behaviour.Call) (any, error) {
				c.Delete(c.ID)
				return nil, nil
			},
		}},
	}
}

func showDeleted(view behaviour.Object) {
	behaviour.Hide(view)
	view["type"] = "Microsoft.KeyVault/deletedVaults"
}

// purgeOperations returns the protocol of purges. Their URL contains the time at which they end.
func purgeOperations() behaviour.Protocol {
	return behaviour.Protocol{
		Name: "Microsoft.KeyVault operationResults",
		Result: func(o behaviour.Operation) string {
			id := base64.RawStdEncoding.EncodeToString([]byte(fmt.Sprintf("UT|%d|%s", o.Start.UnixNano(),
				strings.ReplaceAll(o.ID, "-", ""))))
			return "/subscriptions/" + o.Resource.Subscription() + "/providers/Microsoft.KeyVault/locations/" +
				o.Resource.NameOf("locations") + "/operationResults/" + strings.NewReplacer("+", "-", "/", "_").Replace(id)
		},
		Poll: func(o behaviour.Operation, _ bool) behaviour.Reply {
			body := behaviour.Object{"createdDateTime": seconds(o.Start), "lastActionDateTime": seconds(o.Start), "status": "NotStarted"}
			if o.End.IsZero() {
				return behaviour.Reply{Status: 202, Body: body}
			}
			body["lastActionDateTime"], body["status"] = seconds(o.End), o.State()
			if o.Error != nil {
				body["error"] = o.Error.Body()
			}
			return behaviour.Reply{Status: 200, Body: body}
		},
	}
}

func seconds(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// keepDeleted stores a deleted vault, so that it can be recovered.
func keepDeleted(c *behaviour.Call) error {
	days, ok := behaviour.Int(c.Old, "properties.softDeleteRetentionInDays")
	if !ok {
		days = defaultRetention
	}
	const day = 24 * time.Hour
	properties := behaviour.Object{
		"vaultId":            string(c.ID),
		"location":           c.Location(),
		"tags":               behaviour.Clone(behaviour.Sub(c.Old, "tags")),
		"deletionDate":       c.Now().UTC().Format(time.RFC3339),
		"scheduledPurgeDate": c.Now().Add(time.Duration(days) * day).UTC().Format(time.RFC3339),
	}
	if behaviour.Bool(c.Old, "properties.enablePurgeProtection") {
		properties["purgeProtectionEnabled"] = true
	}
	c.Put(deletedID(c.ID.Subscription(), c.Location(), c.ID.Name()),
		behaviour.Object{"properties": properties, vaultField: behaviour.Clone(c.Old)})
	return nil
}

func deletedID(subscription, location, name string) azure.ID {
	return azure.SubscriptionID(subscription).Resource("Microsoft.KeyVault/locations", location).Child("deletedVaults", name)
}

// findDeleted returns the deleted vault with a name.
func findDeleted(c *behaviour.Call, name string) (azure.ID, behaviour.Object, bool) {
	for id, doc := range behaviour.Everywhere(c, deletedType) {
		if strings.EqualFold(id.Name(), name) && kept(doc, c.Now()) {
			return id, doc, true
		}
	}
	return "", nil, false
}

func kept(doc behaviour.Object, now time.Time) bool {
	until, err := time.Parse(time.RFC3339, behaviour.Text(doc, "properties.scheduledPurgeDate"))
	return err == nil && now.Before(until)
}

func listDeleted(c *behaviour.Call) (behaviour.Reply, error) {
	items := []any{}
	for _, doc := range c.List(azure.SubscriptionID(c.Param["subscription"]), deletedType) {
		if !kept(doc, c.Now()) {
			continue
		}
		view := behaviour.Clone(doc)
		showDeleted(view)
		items = append(items, view)
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": items}}, nil
}
