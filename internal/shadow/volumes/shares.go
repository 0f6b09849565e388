package volumes

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/cluster"
	"kaz/internal/csi/kube"
	"kaz/internal/plan/claim"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/plan/share"
	"kaz/internal/shadow"
)

// Shares decides about the volumes of the driver of Azure Files. It reads no Secret and no key of an account.
func Shares(c Config, client *kube.Client, home share.Cluster) shadow.Source {
	volumes := cluster.Cluster{Client: client, Driver: file.DefaultName}.Volumes
	d := driver{
		Config: c, name: claim.Shares, inTree: claim.InTreeShare, what: "a share",
		check: func(parameters map[string]string) error {
			_, err := share.ReadClass(parameters, nil)
			return err
		},
		before: func(all []*corev1.PersistentVolume) []azure.Query { return sharesOf(all, home) },
		unnamed: func(v *corev1.PersistentVolume) bool {
			named, err := share.ParseVolume(v.Spec.CSI.VolumeHandle)
			return err != nil || named.Account == "" || named.Translated
		},
		open: func(from azure.Reader, to azure.Writer) (controller, func()) {
			return file.NewController(file.Config{
				Name: file.DefaultName, Cluster: home, Volumes: volumes, Log: c.Log,
				Azure: struct {
					azure.Reader
					azure.Writer
				}{from, to},
			}), func() {}
		},
	}
	return shadow.Source{Kind: "file shares", Decide: func(ctx context.Context) ([]plan.Verdict, error) { return d.decide(ctx) }}
}

// sharesOf are the lists of the shares in the accounts of the volumes.
func sharesOf(volumes []*corev1.PersistentVolume, home share.Cluster) (all []azure.Query) {
	for _, v := range volumes {
		named, err := share.ParseVolume(v.Spec.CSI.VolumeHandle)
		if err != nil || named.Account == "" {
			continue
		}
		service := storage.FileServiceOf(home.AccountID(named))
		if !slices.ContainsFunc(all, func(q azure.Query) bool { return q.Scope.Equal(service) }) && len(all) < mostLists {
			all = append(all, azure.Query{Scope: service, Type: storage.Shares})
		}
	}
	return all
}
