import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.messaginghub.pooled.jms.JmsPoolConnectionFactory;
import org.springframework.jms.JmsException;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;

/**
 * A Spring JMS application: orders come in, each is answered with an invoice in the same transaction.
 *
 * <pre>
 * Application order  URL ORDERS FIRST COUNT       sends orders by a JmsTemplate
 * Application serve  URL ORDERS INVOICES COUNT    a listener container, until COUNT different orders are dealt with;
 *                    says `half` when half of them are
 * Application move   FROM-URL QUEUE TO-URL QUEUE COUNT  moves what a queue holds to another broker, COUNT messages at
 *                    least, until it is empty
 * </pre>
 *
 * Connections come from a pool. Nothing in here knows which broker it talks to: that is in the URL. Prints one line at
 * the end; exit 0 when all is as it should be.
 */
public final class Application {
  private static final long PATIENCE_S = 150;
  private static final long COMES_MS = 60_000;
  private static final long EMPTY_MS = 2_000;

  public static void main(String[] a) throws Exception {
    switch (a[0]) {
      case "order" -> order(a[1], a[2], Integer.parseInt(a[3]), Integer.parseInt(a[4]));
      case "serve" -> serve(a[1], a[2], a[3], Integer.parseInt(a[4]));
      case "move" -> move(a[1], a[2], a[3], a[4], Integer.parseInt(a[5]));
      default -> throw new IllegalArgumentException(a[0]);
    }
  }

  private static JmsPoolConnectionFactory pool(String url) {
    JmsPoolConnectionFactory pool = new JmsPoolConnectionFactory();
    pool.setConnectionFactory(new JmsConnectionFactory(url));
    pool.setMaxConnections(2);
    return pool;
  }

  private static void order(String url, String queue, int first, int count) throws Exception {
    JmsPoolConnectionFactory pool = pool(url);
    JmsTemplate template = new JmsTemplate(pool);
    template.setExplicitQosEnabled(true);
    template.setDeliveryPersistent(true);
    for (int i = first; i < first + count; i++) send(template, queue, i);
    pool.stop();
    System.out.println("ordered " + count);
  }

  /** As often as it takes: a broker may be restarting. */
  private static void send(JmsTemplate template, String queue, int number) throws InterruptedException {
    while (true) {
      try {
        template.send(queue, session -> {
          Message order = session.createTextMessage("order " + number);
          order.setIntProperty("number", number);
          return order;
        });
        return;
      } catch (JmsException broken) {
        Thread.sleep(100);
      }
    }
  }

  private static void serve(String url, String orders, String invoices, int count) throws Exception {
    Set<Integer> dealtWith = ConcurrentHashMap.newKeySet();
    CountDownLatch all = new CountDownLatch(1);
    JmsPoolConnectionFactory pool = pool(url);
    DefaultMessageListenerContainer container = container(pool, orders);
    container.setMessageListener((SessionAwareMessageListener<Message>) (message, session) -> {
      int number = message.getIntProperty("number");
      invoice(session, invoices, number);
      if (dealtWith.add(number) && dealtWith.size() == count / 2) System.out.println("half");
      if (dealtWith.size() == count) all.countDown();
    });
    container.afterPropertiesSet();
    container.start();
    boolean done = all.await(PATIENCE_S, TimeUnit.SECONDS);
    container.shutdown();
    pool.stop();
    if (!done) throw new IllegalStateException("only " + dealtWith.size() + " of " + count + " orders came");
    System.out.println("dealt with " + count);
  }

  private static DefaultMessageListenerContainer container(ConnectionFactory connections, String orders) {
    DefaultMessageListenerContainer container = new DefaultMessageListenerContainer();
    container.setConnectionFactory(connections);
    container.setDestinationName(orders);
    container.setSessionTransacted(true);
    container.setConcurrentConsumers(2);
    container.setRecoveryInterval(200);
    container.setErrorHandler(broken -> { }); // rolled back, and comes again
    return container;
  }

  private static void invoice(Session session, String invoices, int number) throws JMSException {
    try (MessageProducer producer = session.createProducer(session.createQueue(invoices))) {
      Message invoice = session.createTextMessage("invoice " + number);
      invoice.setIntProperty("number", number);
      producer.send(invoice);
    }
  }

  /** Acknowledged at the old broker only when the new one has it: nothing is lost whatever breaks. */
  private static void move(String from, String queue, String to, String other, int count) throws Exception {
    try (var old = new JmsConnectionFactory(from).createConnection();
        var next = new JmsConnectionFactory(to).createConnection()) {
      old.start();
      Session taking = old.createSession(false, Session.CLIENT_ACKNOWLEDGE);
      Session giving = next.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = giving.createProducer(giving.createQueue(other));
      var consumer = taking.createConsumer(taking.createQueue(queue));
      int moved = 0;
      for (Message message; (message = consumer.receive(moved < count ? COMES_MS : EMPTY_MS)) != null; moved++) {
        producer.send(message, message.getJMSDeliveryMode(), message.getJMSPriority(), 0); // returns when it is stored
        message.acknowledge();
      }
      System.out.println("moved " + moved);
    }
  }

  private Application() {}
}
