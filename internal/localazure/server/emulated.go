package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
)

// The account that clients of Azure's storage emulators know by heart, and what they call its default ports. Source: "Use the Azurite
// emulator for local Azure Storage development" in Azure's documentation.
const (
	emulatedGroup   = "development-storage"
	emulatedAccount = "devstoreaccount1"
	emulatedKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// emulatedServices are the services of the account in the order of their ports.
var emulatedServices = []string{"blob", "queue", "table"}

// storageAddresses are the addresses of the emulated services: the port of blobs and the next two, or free ports.
func (o *Options) storageAddresses() ([]address, error) {
	const flag = "--development-storage"
	if o.DevelopmentStorage == "" {
		return nil, nil
	}
	first := address{flag, o.DevelopmentStorage}
	if err := first.check(); err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(o.DevelopmentStorage)
	all := []address{first}
	port := netip.MustParseAddrPort(strings.Replace(o.DevelopmentStorage, "localhost:", "127.0.0.1:", 1)).Port()
	if port > 65535-uint16(len(emulatedServices)-1) {
		return nil, fmt.Errorf("%s %s: want a port up to 65533, because queues and tables are at the next two", flag, o.DevelopmentStorage)
	}
	for range emulatedServices[1:] {
		if port > 0 {
			port++
		}
		all = append(all, address{flag, net.JoinHostPort(host, fmt.Sprint(port))})
	}
	return all, nil
}

// serveEmulated serves the storage of the account that clients of emulators know, by paths and over plain HTTP.
func serveEmulated(ctx context.Context, a *Server, o Options) error {
	addresses, err := o.storageAddresses()
	if err != nil || len(addresses) == 0 {
		return err
	}
	key, err := emulate(a, o)
	if err != nil {
		return fmt.Errorf("--development-storage: %w", err)
	}
	parts := []string{"DefaultEndpointsProtocol=http", "AccountName=" + emulatedAccount, "AccountKey=" + key}
	var config net.ListenConfig
	for i, plane := range []hosted{a.blobs, a.queues, a.tables} {
		listener, err := config.Listen(ctx, "tcp", addresses[i].text)
		if err != nil {
			return listenError(addresses[i], err)
		}
		a.closers.add(ignoreClosed(listener.Close))
		a.http.serve(listener, logged(ownHost(account.ByPath(emulatedServices[i], plane)), a.requestLog), nil)
		name := strings.ToUpper(emulatedServices[i][:1]) + emulatedServices[i][1:]
		parts = append(parts, name+"Endpoint=http://"+reachable(listener)+"/"+emulatedAccount)
	}
	a.info.DevelopmentStorage = strings.Join(parts, ";") + ";"
	return nil
}

// emulate makes the account, if the options want one, and returns its key.
func emulate(a *Server, o Options) (key string, err error) {
	if o.DevelopmentStorage == "" {
		return "", nil
	}
	err = a.emulator.Do(func(w behaviour.World) (err error) {
		key, err = makeEmulated(w, azure.SubscriptionID(a.info.Subscription))
		return err
	})
	return key, err
}

// makeEmulated makes the account, if it is not there, and returns its key.
func makeEmulated(w behaviour.World, subscription azure.ID) (key string, err error) {
	if _, doc := account.Find(w, emulatedAccount); doc != nil {
		return storage.Keys(doc)[0], nil
	}
	group := subscription + "/resourceGroups/" + emulatedGroup
	if _, there := w.Get(group); !there {
		if err := w.Apply(behaviour.Itself(), group, behaviour.Object{"location": "eastus"}); err != nil {
			return "", err
		}
	}
	id := group.Resource(storage.AccountType, emulatedAccount)
	err = w.Apply(behaviour.Itself(), id, behaviour.Object{
		"location": "eastus", "kind": "StorageV2", "sku": behaviour.Object{"name": "Standard_RAGRS"},
		"properties": behaviour.Object{"supportsHttpsTrafficOnly": false, "allowBlobPublicAccess": true},
	})
	w.Edit(id, func(doc behaviour.Object) { storage.SetKey(doc, emulatedKey) })
	return emulatedKey, err
}

// ownHost passes on requests that name an address of this machine. The name of a web page may lead here.
func ownHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isHost(r) {
			http.Error(w, "This is the storage of a local Azure, at the address of this machine, not at "+r.Host+".", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
