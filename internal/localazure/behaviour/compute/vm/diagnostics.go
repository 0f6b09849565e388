package vm

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/storage"
)

// ManagedStorage is the domain of the accounts in which Azure keeps the consoles of machines without an account of the user.
const ManagedStorage = "blob.storage.azure.net"

// managedKeyField is the field of a machine's document with the key of that account.
const managedKeyField = schema.Runtime + ".diagnosticsKey"

// Diagnostics is where the console of a machine can be read.
type Diagnostics struct {
	// Managed says that the account is one of [ManagedStorage].
	Managed bool
	// Address is the URL of the account, Account its name.
	Address, Account string
	// Container is the container of the blobs: Log has what the console showed, Screenshot is an image.
	Container, Log, Screenshot string
}

const (
	bootDiagnostics   = "properties.diagnosticsProfile.bootDiagnostics"
	containerPrefix   = "bootdiagnostics-"
	guidLength        = len("00000000-0000-0000-0000-000000000000")
	containerNamePart = 9
)

// DiagnosticsOf returns where the console of a machine can be read, false if its boot diagnostics are off.
func DiagnosticsOf(machine behaviour.Object) (Diagnostics, bool) {
	id := strings.ToLower(behaviour.Text(machine, "properties.vmId"))
	if !behaviour.Bool(machine, bootDiagnostics+".enabled") || len(id) != guidLength {
		return Diagnostics{}, false
	}
	d := Diagnostics{Address: strings.TrimSuffix(behaviour.Text(machine, bootDiagnostics+".storageUri"), "/")}
	if d.Address == "" {
		d.Managed, d.Address = true, "https://md-"+id[guidLength-len("000000000000"):]+".z1."+ManagedStorage
	}
	if u, err := url.Parse(d.Address); err == nil {
		d.Account, _, _ = strings.Cut(strings.ToLower(u.Host), ".")
	}
	name := nameOf(machine)
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	d.Container = containerPrefix + short[:min(len(short), containerNamePart)] + "-" + id
	d.Log, d.Screenshot = name+"."+id+".serialconsole.log", name+"."+id+".screenshot.bmp"
	return d, true
}

// address returns the URL of a blob.
func (d Diagnostics) address(blob string) string { return d.Address + "/" + d.Container + "/" + blob }

// bootView returns what the instance view of a machine says about its console. Consoles in managed storage have no address there.
func (d Diagnostics) bootView() behaviour.Object {
	if d.Managed {
		return behaviour.Object{}
	}
	return behaviour.Object{"serialConsoleLogBlobUri": d.address(d.Log), "consoleScreenshotBlobUri": d.address(d.Screenshot)}
}

// FindConsole returns the machine that has its console in a container of an account, with the keys of the account.
func FindConsole(w behaviour.World, account, container string) (machine azure.ID, d Diagnostics, keys [2]string) {
	if !strings.HasPrefix(container, containerPrefix) {
		return "", d, keys
	}
	for _, kind := range []string{schema.MachineType, schema.InstanceType} {
		for id, doc := range behaviour.Everywhere(w, kind) {
			found, on := DiagnosticsOf(doc)
			if on && found.Container == container && found.Account == account {
				return id, found, found.keys(w, doc)
			}
		}
	}
	return "", d, keys
}

// keys returns the keys of the account with the console.
func (d Diagnostics) keys(w behaviour.World, machine behaviour.Object) (keys [2]string) {
	if d.Managed {
		keys[0] = behaviour.Text(machine, managedKeyField)
		return keys
	}
	for id, doc := range behaviour.Everywhere(w, storage.AccountType) {
		if strings.EqualFold(id.Name(), d.Account) {
			keys = storage.Keys(doc)
		}
	}
	return keys
}

// BootDiagnostics returns the addresses of a machine's console, with signatures that allow to read it.
func BootDiagnostics(c *behaviour.Call) (any, error) {
	d, on := DiagnosticsOf(c.Old)
	if !on {
		return nil, behaviour.Conflict("OperationNotAllowed", "Boot diagnostics is not enabled for the VM '%s'.", c.ID.Name())
	}
	const parameter, otherwise, longest = "sasUriExpirationTimeInMinutes", 120, 1440
	minutes := otherwise
	if text := c.Query.Get(strings.ToLower(parameter)); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > longest {
			return nil, behaviour.Invalid("InvalidParameter", "The value '%s' of parameter '%s' is invalid: 1 to %d are allowed.", text,
				parameter, longest).At(parameter)
		}
		minutes = n
	}
	if d.Managed && behaviour.Text(c.Doc, managedKeyField) == "" {
		behaviour.Set(c.Doc, managedKeyField, storage.NewKey(c.World))
	}
	key := d.keys(c.World, c.Doc)[0]
	if key == "" {
		return nil, behaviour.Conflict("StorageAccountNotFound", "Storage account '%s' not found.", d.Account)
	}
	until := c.Now().Add(time.Duration(minutes) * time.Minute)
	signed := func(blob string) string {
		return d.address(blob) + "?" + storage.BlobSAS(key, d.Account, d.Container, blob, until)
	}
	return behaviour.Object{"consoleScreenshotBlobUri": signed(d.Screenshot), "serialConsoleLogBlobUri": signed(d.Log)}, nil
}
