package vault

import (
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// deletedField is the field of a vault's document with the secrets that clients of the data plane deleted.
const deletedField = behaviour.Private + "deletedSecrets"

// Deleted is a deleted secret that can be recovered until it is purged.
type Deleted struct {
	Name           string
	Secret         behaviour.Object
	Deleted, Purge time.Time
}

// DeletedSecrets returns the deleted secrets of a vault that have not been purged, in the order of their names.
func DeletedSecrets(vault behaviour.Object, now time.Time) []Deleted {
	var all []Deleted
	for _, kept := range behaviour.Objects(vault, deletedField) {
		at, _ := behaviour.Int(kept, "deleted")
		until, _ := behaviour.Int(kept, "purge")
		one := Deleted{Name: behaviour.Text(kept, "name"), Secret: behaviour.Sub(kept, "secret"), Deleted: time.Unix(int64(at), 0),
			Purge: time.Unix(int64(until), 0)}
		if now.Before(one.Purge) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b Deleted) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// FindDeleted returns the deleted secret of a vault with a name.
func FindDeleted(vault behaviour.Object, name string, now time.Time) (Deleted, bool) {
	all := DeletedSecrets(vault, now)
	i := slices.IndexFunc(all, func(d Deleted) bool { return strings.EqualFold(d.Name, name) })
	if i < 0 {
		return Deleted{}, false
	}
	return all[i], true
}

// Retention returns for how many days a vault keeps deleted secrets, and whether they can be purged before.
func Retention(vault behaviour.Object) (days int, purgeable bool) {
	days, ok := behaviour.Int(vault, "properties.softDeleteRetentionInDays")
	if !ok {
		days = defaultRetention
	}
	return days, !behaviour.Bool(vault, "properties.enablePurgeProtection")
}

// RecoveryLevel says whether and how a vault recovers what is deleted in it.
func RecoveryLevel(vault behaviour.Object) string {
	days, purgeable := Retention(vault)
	level := "Recoverable"
	if days < defaultRetention {
		level = "CustomizedRecoverable"
	}
	if purgeable {
		level += "+Purgeable"
	}
	return level
}

// DeleteSecret deletes a secret, which the vault keeps for its retention.
func DeleteSecret(w behaviour.World, secret azure.ID) {
	doc, _ := w.Get(secret)
	kept := behaviour.Clone(doc)
	w.Delete(secret)
	w.Edit(secret.Parent(), func(vault behaviour.Object) {
		dropNamed(vault, secretsField, secret.Name()) // that field is for secrets that return with the vault
		dropNamed(vault, deletedField, secret.Name())
		days, _ := Retention(vault)
		const day = 24 * time.Hour
		vault[deletedField] = append(behaviour.Array(vault, deletedField), behaviour.Object{"name": secret.Name(), "secret": kept,
			"deleted": w.Now().Unix(), "purge": w.Now().Add(time.Duration(days) * day).Unix()})
	})
}

// PurgeSecret forgets a deleted secret.
func PurgeSecret(w behaviour.World, secret azure.ID) {
	w.Edit(secret.Parent(), func(vault behaviour.Object) { dropNamed(vault, deletedField, secret.Name()) })
}

// RecoverSecret stores a deleted secret again, with all its versions.
func RecoverSecret(w behaviour.World, vault azure.ID, d Deleted) {
	PurgeSecret(w, vault.Child("secrets", d.Name))
	w.Put(vault.Child("secrets", d.Name), behaviour.Clone(d.Secret))
}

// dropNamed removes the element with a name from a list of a document.
func dropNamed(doc behaviour.Object, field, name string) {
	left := slices.DeleteFunc(slices.Clone(behaviour.Array(doc, field)), func(element any) bool {
		o, _ := element.(behaviour.Object)
		return strings.EqualFold(behaviour.Text(o, "name"), name)
	})
	if len(left) == 0 {
		delete(doc, field)
		return
	}
	doc[field] = left
}
