package localcluster

import (
	"context"
	_ "embed" // the Service of the answers
	"fmt"

	gatewayanswers "kaz/internal/gateway/answers"
	"kaz/internal/localcluster/realnodes"
	"kaz/internal/observe"
)

//go:embed answers.yaml
var answersService []byte

// answersName is the Service of answers.yaml.
const answersName = "kube-system/application-gateway-answers"

// serveAnswers answers with status codes inside the virtual network until ctx ends. A controller outside of the cluster has no address
// there by which application gateways could reach it.
func (n *realNodes) serveAnswers(ctx context.Context) error {
	listener, err := n.network.Listen(ctx, realnodes.Answers())
	if err != nil {
		return fmt.Errorf("answers for application gateways: %w", err)
	}
	n.tasks.Go(func() error { return observe.Serve(ctx, listener, gatewayanswers.Handler()) })
	return nil
}

// answersFlags returns the flags by which the controller of application gateways knows the answers. Application gateways without a
// network have no backends at all.
func (c components) answersFlags(ctx context.Context) ([]string, error) {
	if _, ok := c.nodes.(*realNodes); !ok {
		return nil, nil
	}
	return []string{"--answers-service=" + answersName, "--answers-address=127.0.0.1:0"}, c.apply(ctx, answersService)
}
