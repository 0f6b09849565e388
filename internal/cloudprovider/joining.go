package cloudprovider

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	informers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"kaz/internal/cloudprovider/approver"
	"kaz/internal/plan/joining"
)

// Approver returns the controller that approves the requests of machines for the certificate of their node. It trusts the authorities of
// this system.
func (c *Cloud) Approver(client kubernetes.Interface, informer informers.CertificateSigningRequestInformer,
	events record.EventRecorder) (*approver.Controller, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("authorities of the signers of documents: %w", err)
	}
	return approver.New(approver.Config{Subscription: c.machines.subscription, Domain: c.attester, Roots: roots, Machine: c.machines.named,
		Transport: http.DefaultTransport}, client, informer, events)
}

// named returns the machine with a node of this name, or nil.
func (i *instances) named(ctx context.Context, name string) (*joining.Machine, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	vm, err := i.locate(ctx, node, freshness{age: recently, wait: longWait})
	if err != nil || vm == nil {
		return nil, err
	}
	return &joining.Machine{ID: vm.ID, VMID: vm.Properties.VMID, Member: joining.IsMember(vm.Tags)}, nil
}
