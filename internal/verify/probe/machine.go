package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

// machine is the fixture with a small virtual machine.
const (
	machine     = "machine"
	machineType = "Microsoft.Compute/virtualMachines"
)

// smallSize is a size of machines that costs about a cent an hour.
const smallSize = "Standard_B1s"

func machineID(b *bench.Bench) azure.ID { return shared(b, machineType, "vm") }

func image() object {
	return object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}
}

// password is one that Azure takes. The machine has no public address, and nothing signs in.
func password() string { return "kaz-" + rand.Text() + "1!" }

func osProfile(name object) object {
	name["adminUsername"], name["adminPassword"] = "kaz", password()
	return name
}

func makeMachine(ctx context.Context, b *bench.Bench) {
	nic := shared(b, nicType, "nic")
	b.Make(ctx, nic, at(b, object{"ipConfigurations": list{child("ip", object{"subnet": ref(subnet(b))})}}))
	b.Make(ctx, machineID(b), at(b, object{
		"hardwareProfile": object{"vmSize": smallSize},
		"storageProfile": object{"imageReference": image(), "osDisk": object{
			"createOption": "FromImage", "deleteOption": "Delete", "managedDisk": object{"storageAccountType": "Standard_LRS"},
		}},
		"osProfile":      osProfile(object{"computerName": "kaz-verify"}),
		"networkProfile": object{"networkInterfaces": list{ref(nic)}},
	}))
}

func machineProbes() []Probe {
	const area = "machines"
	return []Probe{
		{
			Name: "user-names", Area: area, Minutes: 1, Needs: []string{network}, Rights: all(machineType, nicType), Run: userNames,
			Tries: "create machines with the users admin and root; want refusals",
		},
		{
			Name: "ssh-keys", Area: area, Minutes: 1, Needs: []string{network}, Rights: all(machineType, nicType), Run: sshKeys,
			Tries: "create a machine with an ECDSA key; want a refusal",
		},
		{
			Name: "identity-missing", Area: area, Minutes: 1, Rights: all(accountType), Run: identityMissing,
			Tries: "create a storage account with a user-assigned identity that does not exist; want FailedIdentityOperation",
		},
		{
			Name: "interface-stays", Area: area, Minutes: 4, Cents: 1, Needs: []string{network}, Rights: all(machineType, nicType),
			Run:   interfaceStays,
			Tries: "delete a machine and its interface at once; want that the interface is refused until the machine is gone",
		},
	}
}

const accountType = "Microsoft.Storage/storageAccounts"

// unborn is a machine that Azure should refuse, with an interface.
func unborn(ctx context.Context, b *bench.Bench, name string, profile object) object {
	nic := b.ID(nicType, name)
	b.Make(ctx, nic, at(b, object{"ipConfigurations": list{child("ip", object{"subnet": ref(subnet(b))})}}))
	return at(b, object{
		"hardwareProfile": object{"vmSize": smallSize},
		"storageProfile": object{"imageReference": image(), "osDisk": object{
			"createOption": "FromImage", "deleteOption": "Delete", "managedDisk": object{"storageAccountType": "Standard_LRS"},
		}},
		"osProfile":      profile,
		"networkProfile": object{"networkInterfaces": list{object{"id": string(nic), "properties": object{"deleteOption": "Detach"}}}},
	})
}

func userNames(ctx context.Context, b *bench.Bench) {
	for _, name := range []string{"admin", "root"} {
		profile := osProfile(object{"computerName": "kaz"})
		profile["adminUsername"] = name
		refusal(ctx, b, "user "+name, b.ID(machineType, name), unborn(ctx, b, name, profile))
	}
}

// ecdsaKey returns a new public key of a type that Azure refuses.
func ecdsaKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return "", err
	}
	const name = "ecdsa-sha2-nistp256"
	var text []byte
	for _, part := range [][]byte{[]byte(name), []byte("nistp256"), point} {
		text = append(binary.BigEndian.AppendUint32(text, uint32(len(part))), part...)
	}
	return name + " " + base64.StdEncoding.EncodeToString(text), nil
}

func sshKeys(ctx context.Context, b *bench.Bench) {
	key, err := ecdsaKey()
	if err != nil {
		b.Fail(err)
	}
	refusal(ctx, b, "ECDSA key", b.ID(machineType, "vm"), unborn(ctx, b, "vm", object{
		"computerName": "kaz", "adminUsername": "kaz",
		"linuxConfiguration": object{"disablePasswordAuthentication": true, "ssh": object{"publicKeys": list{
			object{"path": "/home/kaz/.ssh/authorized_keys", "keyData": key},
		}}},
	}))
}

func identityMissing(ctx context.Context, b *bench.Bench) {
	account := storageAccount(b)
	account["identity"] = object{"type": "UserAssigned", "userAssignedIdentities": object{
		string(b.ID("Microsoft.ManagedIdentity/userAssignedIdentities", "absent")): object{},
	}}
	refusal(ctx, b, "identity that does not exist", accountID(b, "a"), account, "FailedIdentityOperation")
}

func interfaceStays(ctx context.Context, b *bench.Bench) {
	id := b.ID(machineType, "vm")
	b.Make(ctx, id, unborn(ctx, b, "vm", osProfile(object{"computerName": "kaz"})))
	a := b.Try(ctx, azure.Delete, b.ID(nicType, "vm"), nil)
	b.Agree(a.Failed, "DELETE of the interface of a running machine: %s", a)
	b.Remove(ctx, id)
	a = b.Try(ctx, azure.Delete, b.ID(nicType, "vm"), nil)
	b.Agree(!a.Failed, "DELETE of the interface when the machine is gone: %s", a)
}
