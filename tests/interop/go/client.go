// Azure/go-amqp as a foreign client.
//
//	client send     HOST:PORT QUEUE COUNT          each confirmed, 50 under way
//	client receive  HOST:PORT QUEUE COUNT          accepts each
//	client outcomes HOST:PORT QUEUE                rejects, releases and modifies what it finds
//	client select   HOST:PORT QUEUE COUNT          takes some by a selector, then the others
//	client large    HOST:PORT QUEUE MEBIBYTES      one message of that size there and back
//	client durable  HOST:PORT TOPIC                leaves a durable subscription and comes back to it
//	client drain    HOST:PORT QUEUE                takes credit back, twice, and goes on; then settles as a second
//
// The body of message i is `message i`, its property `number` i. Prints one line; exit 0 when all is as it should be.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
)

var scenarios = map[string]func(context.Context, *amqp.Session, string, int) (string, error){
	"send": send, "receive": receive, "outcomes": outcomes, "select": selecting, "large": large,
	"drain": drain,
}

func main() {
	said, err := run(os.Args[1], os.Args[2], os.Args[3], append(os.Args[4:], "0")[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(said)
}

func run(scenario, address, node, number string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if scenario == "durable" {
		return durable(ctx, address, node)
	}
	count, err := strconv.Atoi(number)
	if err != nil {
		return "", err
	}
	conn, session, err := connect(ctx, address, "")
	if err != nil {
		return "", err
	}
	said, err := scenarios[scenario](ctx, session, node, count)
	return said, errors.Join(err, conn.Close())
}

func connect(ctx context.Context, address, container string) (*amqp.Conn, *amqp.Session, error) {
	conn, err := amqp.Dial(ctx, "amqp://"+address, &amqp.ConnOptions{ContainerID: container})
	if err != nil {
		return nil, nil, err
	}
	session, err := conn.NewSession(ctx, nil)
	return conn, session, err
}

func message(i int) *amqp.Message {
	made := amqp.NewMessage([]byte(fmt.Sprintf("message %d", i)))
	made.Header = &amqp.MessageHeader{Durable: true}
	made.ApplicationProperties = map[string]any{"number": int32(i)}
	return made
}

func send(ctx context.Context, session *amqp.Session, queue string, count int) (string, error) {
	sender, err := session.NewSender(ctx, queue, &amqp.SenderOptions{TargetCapabilities: []string{"queue"}})
	if err != nil {
		return "", err
	}
	receipts := make(chan amqp.SendReceipt, 50)
	var sent error
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		defer close(receipts)
		for i := 0; i < count && sent == nil; i++ {
			var receipt amqp.SendReceipt
			if receipt, sent = sender.SendWithReceipt(ctx, message(i), nil); sent == nil {
				receipts <- receipt
			}
		}
	}()
	accepted := 0
	for receipt := range receipts {
		state, err := receipt.Wait(ctx)
		if _, ok := state.(*amqp.StateAccepted); !ok || err != nil {
			return "", fmt.Errorf("%T %v", state, err)
		}
		accepted++
	}
	done.Wait()
	return fmt.Sprintf("accepted %d", accepted), sent
}

func receive(ctx context.Context, session *amqp.Session, queue string, count int) (string, error) {
	receiver, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{Credit: 100})
	if err != nil {
		return "", err
	}
	for i := 0; i < count; i++ {
		if _, err := taken(ctx, receiver, i, receiver.AcceptMessage); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("received %d in order", count), receiver.Close(ctx)
}

// taken receives the next message, which must be the one with that number, and does with it what is asked.
func taken(
	ctx context.Context, receiver *amqp.Receiver, number int, settle func(context.Context, *amqp.Message) error,
) (*amqp.Message, error) {
	got, err := receiver.Receive(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("awaiting message %d: %w", number, err)
	}
	wanted := message(number)
	if got.ApplicationProperties["number"] != int32(number) || !bytes.Equal(got.GetData(), wanted.GetData()) {
		return nil, fmt.Errorf("%v %q instead of message %d", got.ApplicationProperties, got.GetData(), number)
	}
	return got, settle(ctx, got)
}

// outcomes does everything to one message in turn; it comes again until it is rejected, and is counted once.
func outcomes(ctx context.Context, session *amqp.Session, queue string, _ int) (string, error) {
	if _, err := send(ctx, session, queue, 1); err != nil {
		return "", err
	}
	receiver, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{Credit: 1})
	if err != nil {
		return "", err
	}
	modify := func(ctx context.Context, got *amqp.Message) error {
		return receiver.ModifyMessage(ctx, got, &amqp.ModifyMessageOptions{DeliveryFailed: true})
	}
	reject := func(ctx context.Context, got *amqp.Message) error {
		return receiver.RejectMessage(ctx, got, &amqp.Error{Condition: "realmgate:unreadable"})
	}
	counts := []uint32{}
	for _, settle := range []func(context.Context, *amqp.Message) error{receiver.ReleaseMessage, modify, reject} {
		got, err := taken(ctx, receiver, 0, settle)
		if err != nil {
			return "", err
		}
		counts = append(counts, got.Header.DeliveryCount)
	}
	return fmt.Sprintf("released, modified, rejected at counts %v", counts), receiver.Close(ctx)
}

func selecting(ctx context.Context, session *amqp.Session, queue string, count int) (string, error) {
	if _, err := send(ctx, session, queue, count); err != nil {
		return "", err
	}
	some := &amqp.ReceiverOptions{Credit: -1, Filters: []amqp.LinkFilter{amqp.NewSelectorFilter("number BETWEEN 3 AND 5")}}
	receiver, err := session.NewReceiver(ctx, queue, some)
	if err != nil {
		return "", err
	}
	if err := receiver.IssueCredit(10); err != nil {
		return "", err
	}
	for _, number := range []int{3, 4, 5} {
		if _, err := taken(ctx, receiver, number, receiver.AcceptMessage); err != nil {
			return "", err
		}
	}
	if err := receiver.Close(ctx); err != nil {
		return "", err
	}
	rest, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{Credit: 10})
	if err != nil {
		return "", err
	}
	for i := 0; i < count; i++ {
		if 3 <= i && i <= 5 {
			continue
		}
		if _, err := taken(ctx, rest, i, rest.AcceptMessage); err != nil {
			return "", err
		}
	}
	return "selected, and the rest", rest.Close(ctx)
}

// drain takes back credit that nothing used, and what it then publishes is settled by itself before the receiver.
func drain(ctx context.Context, session *amqp.Session, queue string, _ int) (string, error) {
	receiver, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{Credit: -1})
	if err != nil {
		return "", err
	}
	for i := 0; i < 2; i++ {
		if err := receiver.IssueCredit(5); err != nil {
			return "", err
		}
		if err := receiver.DrainCredit(ctx, nil); err != nil {
			return "", fmt.Errorf("drain %d: %w", i, err)
		}
	}
	second := &amqp.SenderOptions{RequestedReceiverSettleMode: amqp.ReceiverSettleModeSecond.Ptr()}
	sender, err := session.NewSender(ctx, queue, second)
	if err != nil {
		return "", err
	}
	for i := 0; i < 3; i++ {
		if err := sender.Send(ctx, message(i), nil); err != nil {
			return "", err
		}
	}
	if err := receiver.IssueCredit(3); err != nil {
		return "", err
	}
	for i := 0; i < 3; i++ {
		if _, err := taken(ctx, receiver, i, receiver.AcceptMessage); err != nil {
			return "", err
		}
	}
	return "drained twice, then 3", receiver.Close(ctx)
}

func large(ctx context.Context, session *amqp.Session, queue string, mebibytes int) (string, error) {
	body := bytes.Repeat([]byte("0123456789abcdef"), mebibytes<<16)
	sender, err := session.NewSender(ctx, queue, nil)
	if err != nil {
		return "", err
	}
	if err := sender.Send(ctx, amqp.NewMessage(body), nil); err != nil {
		return "", err
	}
	receiver, err := session.NewReceiver(ctx, queue, nil)
	if err != nil {
		return "", err
	}
	got, err := receiver.Receive(ctx, nil)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(got.GetData(), body) {
		return "", fmt.Errorf("%d octets came back changed", len(got.GetData()))
	}
	return fmt.Sprintf("%d octets there and back", len(body)), receiver.AcceptMessage(ctx, got)
}

// durable opens a durable subscription, breaks the connection off, publishes without it, and finds everything there.
func durable(ctx context.Context, address, topic string) (string, error) {
	options := &amqp.ReceiverOptions{
		Name: "watch", Credit: 10, SourceCapabilities: []string{"topic"},
		SourceDurability: amqp.DurabilityUnsettledState, SourceExpiryPolicy: amqp.ExpiryPolicyNever,
	}
	conn, session, err := connect(ctx, address, "go-watcher")
	if err != nil {
		return "", err
	}
	if _, err := session.NewReceiver(ctx, topic, options); err != nil {
		return "", err
	}
	if err := conn.Close(); err != nil {
		return "", err
	}
	conn, session, err = connect(ctx, address, "go-watcher")
	if err != nil {
		return "", err
	}
	sender, err := session.NewSender(ctx, topic, nil)
	if err != nil {
		return "", err
	}
	for i := 0; i < 20; i++ {
		if err := sender.Send(ctx, message(i), nil); err != nil {
			return "", err
		}
	}
	receiver, err := session.NewReceiver(ctx, topic, options)
	if err != nil {
		return "", err
	}
	for i := 0; i < 20; i++ {
		if _, err := taken(ctx, receiver, i, receiver.AcceptMessage); err != nil {
			return "", err
		}
	}
	return "20 were waiting", conn.Close()
}
