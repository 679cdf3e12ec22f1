package realmgate;

import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.io.IOException;
import java.io.Writer;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * A ledger of what a JMS application sends, is told, receives and settles, for
 * {@code realmgate reconcile --ledgers} (docs/client-ledgers.md). The application uses the connection factory
 * that it gives:
 *
 * <pre>Ledger.of(new JmsConnectionFactory("amqp://gateway:5672"), Path.of("ledgers")).createConnection()</pre>
 *
 * Each connection has a file of its own, and so has what comes behind a failover. What goes through a
 * {@code JMSContext} is not noted. The body of a bytes message is noted where it comes, and not where it is sent:
 * reading it there would change the message.
 *
 * <p>Qpid JMS is asked, by reflection, for what Jakarta Messaging has no word for: failovers, sends that do not wait,
 * and links whose messages are sent settled.
 */
public final class Ledger {
  private static final Map<String, String> NOTHING = Map.of();
  private Ledger() {}

  /** The same factory, whose connections note what they do in this directory. */
  public static ConnectionFactory of(ConnectionFactory factory, Path directory) {
    return around(factory, (call, name, arguments) -> {
      Object made = call.now();
      if (!(made instanceof Connection connection)) return made;
      try {
        return new Noted(connection, directory).connection();
      } catch (IOException error) {
        connection.close();
        throw new JMSException("no ledger can be written in " + directory + ": " + error);
      }
    });
  }

  private interface Call {
    Object now() throws Throwable;
  }

  private interface Handler {
    Object handle(Call call, String name, Object[] arguments) throws Throwable;
  }

  /** The same object, each call of which goes through the handler. */
  @SuppressWarnings("unchecked")
  private static <T> T around(T target, Handler handler) {
    Set<Class<?>> types = new LinkedHashSet<>();
    for (Class<?> at = target.getClass(); at != null; at = at.getSuperclass()) {
      types.addAll(List.of(at.getInterfaces()));
    }
    types.removeIf(type -> !type.getName().startsWith("jakarta.jms."));
    Class<?>[] interfaces = types.toArray(Class[]::new);
    return (T) Proxy.newProxyInstance(Ledger.class.getClassLoader(), interfaces, (proxy, method, given) -> {
      Object[] arguments = given == null ? new Object[0] : given;
      Call call = () -> {
        try {
          return method.invoke(target, arguments);
        } catch (InvocationTargetException error) {
          throw error.getCause();
        }
      };
      return handler.handle(call, method.getName(), arguments);
    });
  }

  /** One connection, and its file. */
  private static final class Noted {
    private final Connection connection;
    private final Path directory;
    private final List<Acting> sessions = new CopyOnWriteArrayList<>();
    private volatile int failovers;
    private String client;
    private Writer file;
    private boolean isOpen;
    private boolean isOver;

    Noted(Connection connection, Path directory) throws IOException {
      this.connection = connection;
      this.directory = Files.createDirectories(directory);
      begin();
      QpidJms.listen(connection, this::failedOver);
    }

    private void begin() throws IOException {
      client = UUID.randomUUID().toString();
      file = Files.newBufferedWriter(directory.resolve(client + ".jsonl"));
      isOpen = false;
    }

    /** What is not settled goes back. What follows is another client's; no line says that this one closed. */
    private void failedOver() {
      failovers++;
      for (Acting session : sessions) session.forget();
      synchronized (this) {
        if (isOver) return;
        try {
          file.close();
          begin();
        } catch (IOException error) {
          end();
        }
      }
    }

    int failovers() {
      return failovers;
    }

    Connection connection() {
      return around(connection, (call, name, arguments) -> {
        if (name.equals("close")) {
          for (Acting session : sessions) session.leave();
          call.now();
          note("closed", NOTHING);
          return null;
        }
        Object made = call.now();
        if (!(made instanceof Session session)) return made;
        Acting acting = new Acting(this, session);
        sessions.add(acting);
        return acting.session();
      });
    }

    /** What cannot be written ends the ledger, and nothing of the application: no line says then that it closed. */
    synchronized void note(String what, Map<String, String> fields) {
      if (isOver) return;
      try {
        if (!isOpen && !what.equals("closed") && connection.getClientID() != null) {
          isOpen = true;
          note("opened", Map.of("container", connection.getClientID()));
        }
        write(what, fields);
        if (what.equals("closed")) end();
      } catch (IOException | JMSException error) {
        end();
      }
    }

    private void end() {
      isOver = true;
      try {
        file.close();
      } catch (IOException error) {
        return; // nothing more is noted
      }
    }

    private void write(String what, Map<String, String> fields) throws IOException {
      StringBuilder line = new StringBuilder("{\"v\":1,\"what\":\"" + what + "\",\"client\":\"" + client + "\"");
      line.append(",\"at\":").append(ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()));
      fields.forEach((key, value) -> line.append(",\"").append(key).append("\":").append(Lines.quoted(value)));
      file.write(line.append("}\n").toString());
      file.flush();
    }
  }

  /** One session: what it has received and not settled, and what it has sent in its transaction. */
  private static final class Acting {
    private final Noted noted;
    private final Session session;
    private final boolean isTransacted;
    private final int mode;
    private final List<String> open = new ArrayList<>();
    private final List<String> posted = new ArrayList<>();
    private String transaction = UUID.randomUUID().toString();

    Acting(Noted noted, Session session) throws JMSException {
      this.noted = noted;
      this.session = session;
      isTransacted = session.getTransacted();
      mode = session.getAcknowledgeMode();
    }

    Session session() {
      return around(session, (call, name, arguments) -> {
        if (name.equals("recover") || name.equals("close")) leave();
        Object made;
        try {
          made = call.now();
          if (name.equals("commit")) committed();
        } finally {
          if (name.equals("commit") || name.equals("rollback")) begin(); // the library has begun another one
          if (name.equals("close")) noted.sessions.remove(this);
        }
        if (made instanceof MessageProducer producer) return producer(producer);
        if (!(made instanceof MessageConsumer consumer)) return made;
        Destination from = (Destination) arguments[0];
        return consumer(consumer, QpidJms.isPresettled(noted.connection, session, from, QpidJms.CONSUMER));
      });
    }

    private synchronized void committed() {
      for (String id : posted) noted.note("told", Map.of("id", id, "outcome", "accepted"));
      noted.note("committed", Map.of("transaction", transaction));
    }

    private synchronized void begin() {
      posted.clear();
      transaction = UUID.randomUUID().toString();
    }

    /** What was received and not settled goes back with a state that the library chooses. */
    synchronized void leave() {
      for (String id : open) settled(id, "unknown");
      open.clear();
    }

    /** The connection has failed over. */
    synchronized void forget() {
      open.clear();
    }

    private void settled(String id, String outcome) {
      Map<String, String> fields = new LinkedHashMap<>(Map.of("id", id, "outcome", outcome));
      if (isTransacted) fields.put("transaction", transaction);
      noted.note("settled", fields);
    }

    private MessageProducer producer(MessageProducer producer) {
      return around(producer, (call, name, arguments) -> {
        if (!name.equals("send")) return call.now();
        Message message = null;
        Destination to = producer.getDestination();
        Integer deliveryMode = null;
        boolean isAwaited = !isTransacted && !QpidJms.waitsForNone(noted.connection);
        for (Object argument : arguments) {
          if (argument instanceof Message sent) message = sent;
          else if (argument instanceof Destination destination) to = destination;
          else if (argument instanceof Integer number && deliveryMode == null) deliveryMode = number;
          else if (argument instanceof CompletionListener) isAwaited = false;
        }
        if (deliveryMode == null) deliveryMode = producer.getDeliveryMode();
        isAwaited &= !QpidJms.isPresettled(noted.connection, session, to, QpidJms.PRODUCER);
        int failovers = noted.failovers();
        boolean isAnswered = false;
        try {
          Object result = call.now();
          isAnswered = isAwaited && deliveryMode == DeliveryMode.PERSISTENT && failovers == noted.failovers();
          return result;
        } finally {
          if (message != null && to != null) sent(message, to, isAnswered);
        }
      });
    }

    private synchronized void sent(Message message, Destination to, boolean isAnswered) {
      String id = Lines.idOf(message);
      if (id == null) return;
      Map<String, String> fields = new LinkedHashMap<>(Map.of("node", Lines.nameOf(to), "id", id));
      String body = message instanceof BytesMessage ? null : Lines.bodyOf(message);
      if (body != null) fields.put("body", body);
      if (isTransacted) fields.put("transaction", transaction);
      noted.note("sent", fields);
      if (isTransacted) posted.add(id);
      if (isAnswered) noted.note("told", Map.of("id", id, "outcome", "accepted"));
    }

    private MessageConsumer consumer(MessageConsumer consumer, boolean isPresettled) {
      return around(consumer, (call, name, arguments) -> {
        if (name.equals("setMessageListener") && arguments[0] instanceof MessageListener listener) {
          consumer.setMessageListener(heard(listener, isPresettled));
          return null;
        }
        Object result = call.now();
        if (!name.startsWith("receive") || !(result instanceof Message message)) return result;
        Message ours = received(message, isPresettled);
        given(message, isPresettled ? "unknown" : "accepted");
        return ours;
      });
    }

    private MessageListener heard(MessageListener listener, boolean isPresettled) {
      return message -> {
        String outcome = "unknown";
        try {
          listener.onMessage(received(message, isPresettled));
          if (!isPresettled) outcome = "accepted";
        } finally {
          given(message, outcome);
        }
      };
    }

    /** Notes it. The message that the application gets: in CLIENT_ACKNOWLEDGE one that notes its acknowledgement. */
    private synchronized Message received(Message message, boolean isPresettled) {
      String id = Lines.idOf(message);
      if (id == null) return message; // of a plain producer of Kafka: no line could name it
      Map<String, String> fields = new LinkedHashMap<>(Map.of("id", id));
      String body = Lines.bodyOf(message);
      if (body != null) fields.put("body", body);
      noted.note("received", fields);
      boolean isAcknowledged = mode == Session.CLIENT_ACKNOWLEDGE && !isPresettled;
      if (isTransacted) settled(id, isPresettled ? "unknown" : "accepted");
      else if (isAcknowledged) open.add(id);
      else if (mode != Session.AUTO_ACKNOWLEDGE) settled(id, "unknown");
      if (!isAcknowledged) return message;
      return around(message, (call, name, arguments) -> {
        if (name.equals("acknowledge")) acknowledged();
        return call.now();
      });
    }

    /** In AUTO_ACKNOWLEDGE the library settles it now. */
    private void given(Message message, String outcome) {
      String id = Lines.idOf(message);
      if (id != null && mode == Session.AUTO_ACKNOWLEDGE) settled(id, outcome);
    }

    private synchronized void acknowledged() {
      for (String id : open) settled(id, "accepted");
      open.clear();
    }
  }
}
