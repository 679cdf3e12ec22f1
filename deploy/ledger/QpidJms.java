package realmgate;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.Session;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * What Jakarta Messaging has no word for, as Qpid JMS has it: failovers, sends that do not wait, and links whose
 * messages are sent settled. It is asked by reflection: of other libraries nothing is known.
 */
final class QpidJms {
  static final String[] CONSUMER = {"isConsumerPresttled", "isConsumerPresettled"};
  static final String[] PRODUCER = {"isProducerPresttled", "isProducerPresettled"};

  private QpidJms() {}

  /** Sends return before their outcome has come. */
  static boolean waitsForNone(Connection connection) {
    return Boolean.TRUE.equals(answer(connection, new Object[0], "isForceAsyncSend"));
  }

  /** Whether messages between that session and destination are sent settled. */
  static boolean isPresettled(Connection connection, Session session, Destination destination, String... question) {
    Object policy = answer(connection, new Object[0], "getPresettlePolicy");
    if (policy == null || destination == null) return false;
    return Boolean.TRUE.equals(answer(policy, new Object[] {session, destination}, question));
  }

  /** Has Qpid JMS say when a connection is interrupted. Other libraries say nothing of it. */
  static void listen(Connection connection, Runnable failedOver) {
    for (Method method : connection.getClass().getMethods()) {
      if (!method.getName().equals("addConnectionListener")) continue;
      Class<?> type = method.getParameterTypes()[0];
      Object listener = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, heard, given) -> {
        if (heard.getName().equals("onConnectionInterrupted")) failedOver.run();
        if (heard.getName().equals("equals")) return proxy == given[0];
        return heard.getName().equals("hashCode") ? System.identityHashCode(proxy) : null;
      });
      try {
        method.invoke(connection, listener);
      } catch (ReflectiveOperationException error) {
        return; // a library that does not say it
      }
    }
  }

  /** What a library's own method says, by the first of these names that it has; null where it has none. */
  private static Object answer(Object of, Object[] arguments, String... names) {
    for (String name : names) {
      for (Method method : of.getClass().getMethods()) {
        if (!method.getName().equals(name) || method.getParameterCount() != arguments.length) continue;
        try {
          return method.invoke(of, arguments);
        } catch (ReflectiveOperationException | IllegalArgumentException error) {
          return null;
        }
      }
    }
    return null;
  }
}
