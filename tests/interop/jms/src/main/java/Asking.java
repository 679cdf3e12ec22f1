import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Request and reply as JMS applications do it: a temporary queue, and producers without a destination.
 *
 * <pre>
 * Asking ask   URL QUEUE COUNT      a service in a transacted session answers COUNT requests; every tenth answer is
 *                                   rolled back once. Prints `answered COUNT`
 * Asking topic URL COUNT            a temporary topic, published to from another connection. Prints `heard COUNT`
 * Asking gone  URL QUEUE            what is sent to a temporary queue that was deleted, to one whose connection has
 *                                   closed and to a queue that never was is refused, and the producer goes on. Prints
 *                                   `gone`
 * Asking own   URL                  a temporary queue and topic are consumed by their own connection only, however
 *                                   another one names them; both may be published to. Prints `own`
 * </pre>
 */
public final class Asking {
  private static final long RECEIVE_MS = 15_000;

  public static void main(String[] arguments) throws Exception {
    JmsConnectionFactory factory = new JmsConnectionFactory(arguments[1]);
    try (Connection client = factory.createConnection(); Connection service = factory.createConnection()) {
      client.start();
      service.start();
      switch (arguments[0]) {
        case "ask" -> ask(client, service, arguments[2], Integer.parseInt(arguments[3]));
        case "topic" -> topic(client, service, Integer.parseInt(arguments[2]));
        case "gone" -> gone(factory, client, service, arguments[2]);
        case "own" -> own(client, service);
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
  }

  private static void ask(Connection client, Connection service, String name, int count) throws Exception {
    Session asking = client.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Session answering = service.createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = asking.createQueue(name);
    MessageConsumer requests = answering.createConsumer(queue);
    MessageProducer answers = answering.createProducer(null);
    TemporaryQueue replies = asking.createTemporaryQueue();
    MessageConsumer replied = asking.createConsumer(replies);
    MessageProducer questions = asking.createProducer(null);
    for (int i = 0; i < count; i++) {
      TextMessage question = asking.createTextMessage("question " + i);
      question.setJMSReplyTo(replies);
      question.setJMSCorrelationID("number " + i);
      questions.send(queue, question, DeliveryMode.PERSISTENT, 4, 0);
      answer(answering, requests, answers);
      if (i % 10 == 0) {
        answering.rollback();
        answer(answering, requests, answers);
      }
      answering.commit();
      TextMessage reply = (TextMessage) replied.receive(RECEIVE_MS);
      check(reply != null, "no answer to " + i);
      check(reply.getText().equals("answer to question " + i), reply.getText());
      check(reply.getJMSCorrelationID().equals("number " + i), reply.getJMSCorrelationID());
      check(reply.getJMSDeliveryMode() == DeliveryMode.PERSISTENT, "it is not durable any more");
      check(!reply.getJMSRedelivered(), "it was given before");
      check(reply.getJMSDestination().equals(replies), "it says that it was sent to " + reply.getJMSDestination());
    }
    check(replied.receive(500) == null, "an answer that was rolled back has come");
    System.out.println("answered " + count);
  }

  private static void answer(Session session, MessageConsumer requests, MessageProducer answers) throws JMSException {
    TextMessage question = (TextMessage) requests.receive(RECEIVE_MS);
    check(question != null, "no question");
    check(question.getJMSReplyTo() instanceof TemporaryQueue, "to be answered at " + question.getJMSReplyTo());
    TextMessage answer = session.createTextMessage("answer to " + question.getText());
    answer.setJMSCorrelationID(question.getJMSCorrelationID());
    answers.send(question.getJMSReplyTo(), answer, DeliveryMode.PERSISTENT, 4, 0);
  }

  private static void topic(Connection client, Connection service, int count) throws Exception {
    Session hearing = client.createSession(false, Session.AUTO_ACKNOWLEDGE);
    TemporaryTopic topic = hearing.createTemporaryTopic();
    MessageConsumer one = hearing.createConsumer(topic);
    MessageConsumer other = hearing.createConsumer(topic);
    Session saying = service.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = saying.createProducer(null);
    for (int i = 0; i < count; i++) producer.send(topic, saying.createTextMessage("news " + i));
    for (MessageConsumer consumer : new MessageConsumer[] {one, other}) {
      for (int i = 0; i < count; i++) {
        Message news = consumer.receive(RECEIVE_MS);
        check(news != null && ((TextMessage) news).getText().equals("news " + i), "news " + i + " has not come");
      }
    }
    System.out.println("heard " + count);
  }

  private static void gone(JmsConnectionFactory factory, Connection client, Connection service, String name)
      throws Exception {
    Session session = service.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(null);
    Session owning = client.createSession(false, Session.AUTO_ACKNOWLEDGE);
    TemporaryQueue deleted = owning.createTemporaryQueue();
    producer.send(deleted, session.createTextMessage("there"));
    deleted.delete();
    refused(producer, session.createQueue(deleted.getQueueName()), session); // by name: the client would not even try
    Queue left;
    try (Connection leaving = factory.createConnection()) {
      Session own = leaving.createSession(false, Session.AUTO_ACKNOWLEDGE);
      left = session.createQueue(own.createTemporaryQueue().getQueueName());
      producer.send(left, session.createTextMessage("there"));
    }
    for (int i = 0; ; i++) { // the end of a connection is answered at once
      try {
        producer.send(left, session.createTextMessage("there?"));
        check(i < 100, "a temporary queue outlives its connection");
        Thread.sleep(50);
      } catch (InvalidDestinationException end) {
        break;
      }
    }
    // Any other name makes its queue here, a temporary one never.
    refused(producer, session.createQueue("temporary:of-none"), session);
    producer.send(session.createQueue(name), session.createTextMessage("the producer goes on"));
    MessageConsumer consumer = session.createConsumer(session.createQueue(name));
    check(consumer.receive(RECEIVE_MS) != null, "what was sent in the end has not come");
    System.out.println("gone");
  }

  private static void own(Connection client, Connection service) throws Exception {
    Session owning = client.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Session other = service.createSession(false, Session.AUTO_ACKNOWLEDGE);
    TemporaryQueue queue = owning.createTemporaryQueue();
    TemporaryTopic topic = owning.createTemporaryTopic();
    Queue named = other.createQueue(queue.getQueueName()); // by name: the client would not even try
    locked(() -> other.createConsumer(named));
    locked(() -> other.createBrowser(named).getEnumeration());
    locked(() -> other.createConsumer(other.createTopic(topic.getTopicName())));
    MessageConsumer asks = owning.createConsumer(queue);
    MessageConsumer hears = client.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(topic);
    MessageProducer producer = other.createProducer(null);
    producer.send(named, other.createTextMessage("to the queue"));
    producer.send(topic, other.createTextMessage("to the topic"));
    for (MessageConsumer consumer : new MessageConsumer[] {asks, hears}) {
      check(consumer.receive(RECEIVE_MS) != null, "its own connection gets nothing");
    }
    System.out.println("own");
  }

  private interface Attempt {
    Object run() throws Exception;
  }

  private static void locked(Attempt attempt) throws Exception {
    try {
      attempt.run();
      throw new IllegalStateException("another connection consumes from it");
    } catch (JMSException refusal) {
      check(String.valueOf(refusal.getMessage()).contains("amqp:resource-locked"), refusal.getMessage());
    }
  }

  private static void refused(MessageProducer producer, Destination destination, Session session) throws JMSException {
    try {
      producer.send(destination, session.createTextMessage("to none"));
      throw new IllegalStateException("a message to " + destination + " was taken");
    } catch (InvalidDestinationException expected) {
      // as it should be
    }
  }

  private static void check(boolean holds, String words) {
    if (!holds) throw new IllegalStateException(words);
  }

  private Asking() {}
}
